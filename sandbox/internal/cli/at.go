// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/past"
)

func newAt(r *root) *cobra.Command {
	return &cobra.Command{
		Use:   "at [--data-dir DIR] REVISION kubectl get ...",
		Short: "Read objects as they were at an earlier revision",
		Long: `Run kubectl against a sandbox as it was at a revision: the metadata.resourceVersion of an
object or of a list, or what 'snapshot' names. It can read objects, and nothing else.

A sandbox forgets revisions that are older than five to ten minutes, unless it was started
with --keep-history.`,
		Example: `  sandbox at 1234 kubectl get pods -A
  sandbox at 1234 kubectl get deployment web -o yaml`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			args = r.takeDataDir(args)
			if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			if len(args) < 2 || args[1] != component.Kubectl {
				return errors.New("want a revision and a command of kubectl, like 'sandbox at 1234 kubectl get pods': see 'sandbox at --help'")
			}
			revision, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || revision < 1 {
				return fmt.Errorf("%q is not a revision: want a number like the metadata.resourceVersion of an object", args[0])
			}
			return r.at(cmd.Context(), revision, args[2:])
		},
	}
}

func (r *root) at(ctx context.Context, revision int64, args []string) (err error) {
	dir, _, err := r.running(ctx)
	if err != nil {
		return err
	}
	config, err := dir.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	now, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if present, err := strconv.ParseInt(now.ResourceVersion, 10, 64); err == nil && revision > present {
		return fmt.Errorf("there is no revision %d yet: the last one is %d", revision, present)
	}
	kubeconfig, server, err := past.Serve(config, revision)
	if err != nil {
		return err
	}
	defer server.Close()
	file, err := os.CreateTemp("", "sandbox-at-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.Write(kubeconfig)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	kubectl := exec.CommandContext(ctx, "/proc/self/exe", args...)
	kubectl.Args[0] = component.Kubectl
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+file.Name())
	kubectl.Stdin, kubectl.Stdout, kubectl.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = kubectl.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() > 0 {
		return exitError(ended.ExitCode())
	}
	return err
}
