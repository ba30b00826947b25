// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// reportFD is the environment variable with the number of a file descriptor, the write end of a
// pipe. A detached sandbox writes a single line to this pipe: an empty line when it is ready, or an
// error message if it has failed.
const reportFD = "SANDBOX_REPORT_FD"

func newUp(s *target) *cobra.Command {
	o := cluster.Options{Nodes: 5, Delays: kubelet.DefaultDelays()}
	var detach bool
	var owner int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a sandbox",
		Long: `Start a sandbox and stay until Ctrl-C, or return once it is ready with --detach.

The state of a sandbox is kept in its data directory for the next 'up', unless
that one is --fresh.

How long pods take is set by the --pod-*-after flags, and for the pods of one workload
by annotations of its pod template:
  sandbox.tidekeeper.dev/behavior: normal|slow|never-ready|crash-loop|image-pull-backoff
  sandbox.tidekeeper.dev/initialized-after: 2s   (and the others, named like the flags)`,
		Example: `  # In the foreground, with ten nodes.
  sandbox up --nodes 10

  # In the background, with a kubeconfig where you want it and an audit log.
  sandbox up --detach --kubeconfig ./kubeconfig --audit

  # For a test or a script: gone when that is, even if it is killed.
  sandbox up --detach --data-dir "$(mktemp -d)" --owner $$

  # With a node that runs containers, as root.
  sandbox up --nodes 0 --real-nodes 1

  # From an empty state, with pods that take their time.
  sandbox up --fresh --pod-initialized-after 2s --pod-containers-ready-after 5s`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = s.dir(); err != nil {
				return err
			}
			if err := checkNodes(o); err != nil {
				return err
			}
			if err := chooseRelease(cmd.Flags(), &o); err != nil {
				return err
			}
			if cmd.Flags().Changed("owner") {
				if o.Owner, err = cluster.FindOwner(owner); err != nil {
					return err
				}
			}
			if o.Kubeconfig != "" {
				abs, err := cluster.Abs(o.Kubeconfig)
				if err != nil {
					return err
				}
				o.Kubeconfig = string(abs)
			}
			if detach {
				return upDetached(cmd, o)
			}
			return up(cmd, o)
		},
	}
	addUp(cmd.Flags(), &o)
	cmd.Flags().BoolVar(&detach, "detach", false, "return once the sandbox is ready and leave it running")
	cmd.Flags().IntVar(&owner, "owner", 0, "stop and remove the data directory when the process with this ID has ended, even if it was killed")
	return cmd
}

// addUp adds the flags that set the options of a sandbox.
func addUp(flags *pflag.FlagSet, o *cluster.Options) {
	flags.SortFlags = false
	flags.IntVar(&o.Nodes, "nodes", o.Nodes, "minimum number of nodes")
	flags.IntVar(&o.RealNodes, "real-nodes", 0, "number of additional nodes with a real kubelet, which run containers; needs root and 'make build-node'")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "also write the kubeconfig of the administrator to this file")
	flags.BoolVar(&o.Audit, "audit", false, "log each request to the API server to audit.log in the data directory")
	flags.BoolVar(&o.Fresh, "fresh", false, "remove the state of earlier runs from the data directory first")
	flags.StringVar((*string)(&o.Kubernetes), "kubernetes", "", "run this release of Kubernetes, like 1.34, which 'make build-kubernetes' has built (default $SANDBOX_KUBERNETES, or that of --version)")
	flags.StringVar(&o.EmulatedVersion, "emulated-version", "", "have the APIs and features of this release of Kubernetes only, like 1.34 (default that of --version)")
	flags.StringVar(&o.FeatureGates, "feature-gates", "", "feature gates of the control plane, like A=true,B=false, as kube-apiserver has them")
	flags.StringVar(&o.RuntimeConfig, "runtime-config", "", "APIs of kube-apiserver to turn on or off, like batch/v2alpha1=true")
	flags.BoolVar(&o.KeepHistory, "keep-history", false, "keep each revision of each object, for 'sandbox kubectl --at': memory and disk grow with each write")
	flags.BoolVar(&o.PodEvents, "pod-events", true, "let kubelets write events about pods; leave them out where thousands of pods come and go")
	o.Delays.AddFlags(flags)
}

// checkNodes rejects negative numbers of nodes, too many real nodes, and negative delays of pods.
func checkNodes(o cluster.Options) error {
	if o.Nodes < 0 {
		return fmt.Errorf("--nodes %d: a sandbox cannot have fewer than 0 nodes", o.Nodes)
	}
	if o.RealNodes < 0 || o.RealNodes > realnode.Most {
		return fmt.Errorf("--real-nodes %d: want a number from 0 to %d", o.RealNodes, realnode.Most)
	}
	return o.Delays.Validate()
}

// up runs the sandbox in this process until the sandbox stops.
func up(cmd *cobra.Command, o cluster.Options) error {
	report := func(string) {}
	detached := os.Getenv(reportFD) != ""
	if detached {
		pipe := os.NewFile(3, "report")
		// Close the pipe in child processes. Otherwise, the reader would not reach EOF while a
		// component is running.
		syscall.CloseOnExec(3)
		os.Unsetenv(reportFD)
		report = func(line string) { fmt.Fprintln(pipe, line); pipe.Close() }
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "Starting a sandbox in %s ...\n", o.Dir)
	}
	o.Ready = func(s cluster.Status) {
		printReady(cmd.OutOrStdout(), s, o)
		if !detached {
			fmt.Fprintln(cmd.OutOrStdout(), "\nPress Ctrl-C to stop it.")
		}
		report("")
	}
	o.Crashed = func(e supervisor.Exit) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s %s\nStart it again with: sandbox component start %s%s\n",
			time.Now().Format(time.TimeOnly), cluster.Describe(e), e.Name, at(o.Dir))
	}
	err := cluster.Run(cmd.Context(), o)
	if err != nil {
		report(err.Error())
	} else if !detached {
		fmt.Fprintln(cmd.OutOrStdout(), "The sandbox has stopped.")
	}
	return err
}

// at returns the --data-dir flag that other commands need to find the sandbox, or "" if it is in
// the default directory.
func at(dir cluster.Dir) string {
	if standard, err := (&target{}).dir(); err == nil && standard == dir {
		return ""
	}
	return " --data-dir " + string(dir)
}

func printReady(out io.Writer, s cluster.Status, o cluster.Options) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	version := s.Version
	if s.EmulatedVersion != "" {
		version += " as " + s.EmulatedVersion
	}
	fmt.Fprintf(out, `Kubernetes %s is ready after %s (the API server after %s) with %s.
  API server  %s
  kubeconfig  %s
`, version, seconds(s.Times.Ready.Duration), seconds(s.Times.APIServerReady.Duration), atLeast(o.Nodes), s.APIServer, s.Kubeconfig)
	if s.AuditLog != "" {
		fmt.Fprintf(out, "  audit log   %s\n", s.AuditLog)
	}
	fmt.Fprintf(out, `
Talk to it:
  export KUBECONFIG=%s
  sandbox kubectl%s get nodes
`, s.Kubeconfig, at(o.Dir))
}

func atLeast(nodes int) string {
	if nodes == 1 {
		return "at least 1 node"
	}
	return fmt.Sprintf("at least %d nodes", nodes)
}

// childArgs returns the command line arguments that give the same options to the process of a
// detached sandbox.
func childArgs(o cluster.Options) []string {
	args := []string{
		"sandbox", "up", "--data-dir", string(o.Dir), fmt.Sprintf("--nodes=%d", o.Nodes), fmt.Sprintf("--real-nodes=%d", o.RealNodes), "--kubeconfig=" + o.Kubeconfig,
		fmt.Sprintf("--audit=%t", o.Audit), fmt.Sprintf("--fresh=%t", o.Fresh), fmt.Sprintf("--pod-events=%t", o.PodEvents),
		"--kubernetes=" + string(o.Kubernetes), "--emulated-version=" + o.EmulatedVersion, fmt.Sprintf("--keep-history=%t", o.KeepHistory),
		"--feature-gates=" + o.FeatureGates, "--runtime-config=" + o.RuntimeConfig,
	}
	if o.Owner != nil {
		args = append(args, fmt.Sprintf("--owner=%d", o.Owner.PID))
	}
	return append(args, o.Delays.Args()...)
}

// upDetached starts the sandbox in another process, and returns once the sandbox is ready or has
// failed.
func upDetached(cmd *cobra.Command, o cluster.Options) error {
	if joined, err := join(cmd, o); joined {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := o.Check(); err != nil {
		if joined, err := join(cmd, o); joined {
			return err
		}
		return err
	}
	log, err := os.OpenFile(o.Dir.Log(), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	child := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        childArgs(o),
		Env:         append(os.Environ(), reportFD+"=3"),
		Stdout:      log,
		Stderr:      log,
		ExtraFiles:  []*os.File{w},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := child.Start(); err != nil {
		return err
	}
	w.Close()
	// Forward termination signals to the process of the sandbox.
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-cmd.Context().Done():
			_ = child.Process.Signal(syscall.SIGTERM)
		case <-done:
		}
	}()
	answer, err := io.ReadAll(bufio.NewReader(r))
	if err != nil {
		return err
	}
	text := strings.TrimSuffix(string(answer), "\n")
	if len(answer) == 0 || text != "" {
		_ = child.Wait()
		if joined, err := join(cmd, o); joined {
			return err
		}
		if o.Abandoned() {
			return fmt.Errorf("--owner %d: the process has ended", o.Owner.PID)
		}
	}
	switch {
	case len(answer) == 0:
		return fmt.Errorf("the sandbox ended before it was ready: see %s", o.Dir.Log())
	case text != "":
		return errors.New(text)
	}
	s, err := o.Dir.Control().Status(cmd.Context())
	if err != nil {
		return err
	}
	printReady(cmd.OutOrStdout(), s, o)
	fmt.Fprintf(cmd.OutOrStdout(), "\nIt runs in the background (pid %d). Stop it with: sandbox down%s\n", s.PID, at(o.Dir))
	return nil
}
