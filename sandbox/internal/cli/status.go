// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// statusOutput is the JSON output of the status command.
type statusOutput struct {
	cluster.Status
	Nodes nodeCount `json:"nodes"`
}

type nodeCount struct {
	Total int `json:"total"`
	Ready int `json:"ready"`
	// Error is the reason why the nodes could not be counted, or empty.
	Error string `json:"error,omitempty"`
}

func newStatus(s *target) *cobra.Command {
	var output string
	var quiet quietFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of a sandbox, at once or when it is quiet",
		Long: `Show the state of a sandbox and of its components. The exit code is 1 if no
sandbox runs, or if one of its components does not run. With -o json it is 0 in
the latter case, and ready is false.

With --until-quiet it waits first, until nothing has been written to any object for so long,
but Leases and Events, which are written at rest. Then controllers have nothing more to do,
unless they wait for a time of their own. If that does not come, the exit code is 1, and the
error names the last write: as a test, that nothing writes at rest.`,
		Example: `  sandbox status
  sandbox status -o json
  sandbox kubectl apply -f app.yaml && sandbox status --until-quiet 1s`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: want json, or leave it out", output)
			}
			if err := quiet.await(cmd, s); err != nil {
				return err
			}
			_, status, err := s.running(cmd.Context())
			if err != nil {
				return err
			}
			result := statusOutput{Status: status, Nodes: countNodes(cmd.Context(), patienceWith(status), s.client)}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(result)
			}
			if err := printStatus(cmd.OutOrStdout(), result); err != nil {
				return err
			}
			if down := status.Down(); status.CameUp() && len(down) > 0 {
				return fmt.Errorf("the sandbox is not ready: %s: see 'sandbox component --help'", strings.Join(down, ", "))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or empty for people")
	quiet.add(cmd)
	return cmd
}

// patienceWith returns how long the API server has to answer before the nodes count as unknown. An
// API server answers late on a busy machine, but perhaps never while a component does not run or the
// sandbox starts.
func patienceWith(s cluster.Status) time.Duration {
	if s.Ready {
		return 30 * time.Second
	}
	return 2 * time.Second
}

// countNodes counts the nodes. The API server has the given time to answer.
func countNodes(ctx context.Context, patience time.Duration, connect func(context.Context) (kubernetes.Interface, error)) nodeCount {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := connect(ctx)
	if err != nil {
		return nodeCount{Error: err.Error()}
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nodeCount{Error: "the API server does not answer: " + err.Error()}
	}
	count := nodeCount{Total: len(list.Items)}
	for _, n := range list.Items {
		if node.Ready(&n) {
			count.Ready++
		}
	}
	return count
}

func printStatus(out io.Writer, s statusOutput) error {
	state := "starting"
	switch {
	case s.Ready:
		state = "ready"
	case s.CameUp():
		state = "not ready"
	}
	fmt.Fprintf(out, "Kubernetes %s in %s is %s (pid %d, up for %s).\n",
		s.Version, s.DataDir, state, s.PID, time.Since(s.Started).Round(time.Second))
	fmt.Fprintf(out, "  API server  %s\n  kubeconfig  %s\n", s.APIServer, s.Kubeconfig)
	if s.AuditLog != "" {
		fmt.Fprintf(out, "  audit log   %s\n", s.AuditLog)
	}
	if s.Nodes.Error != "" {
		fmt.Fprintf(out, "  nodes       unknown: %s\n", s.Nodes.Error)
	} else {
		fmt.Fprintf(out, "  nodes       %d, %d of them ready\n", s.Nodes.Total, s.Nodes.Ready)
	}
	fmt.Fprintf(out, "  memory      %s\n\n", mebibytes(s.RSSBytes))
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tSTATE\tPID\tPORT\tRESTARTS\tMEMORY")
	for _, c := range s.Components {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", c.Name, stateOf(c), number(c.PID), number(c.Port), c.Restarts, mebibytes(c.RSSBytes))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range s.Components {
		if c.State == supervisor.Crashed {
			fmt.Fprintf(out, "\n%s\n", cluster.Describe(supervisor.Exit{Status: c.Status, Tail: c.LogTail}))
		}
	}
	return nil
}

func stateOf(c cluster.Component) string {
	if c.State == supervisor.Crashed {
		return fmt.Sprintf("%s (%s)", c.State, c.Exit)
	}
	return string(c.State)
}

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
