// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the sandbox command: one file per subcommand.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
)

// DataDirEnv is where the sandbox lies if --data-dir does not say it.
const DataDirEnv = "SANDBOX_DATA_DIR"

// Main runs the command and returns the exit code.
func Main() int {
	// What client libraries would log is told by our own errors.
	klog.SetLogger(klog.New(nil))
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	// Flags that the compiled-in programs registered for themselves.
	pflag.CommandLine = pflag.NewFlagSet("sandbox", pflag.ContinueOnError)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted")
		}
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

// root is what all subcommands share.
type root struct{ dataDir string }

func newRoot() *cobra.Command {
	r := &root{}
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "A real Kubernetes control plane on this machine, with simulated nodes",
		Long: `A real Kubernetes control plane on this machine, with simulated nodes.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl are
the upstream programs, compiled into this binary. Nodes and what runs on them
are simulated: pods become ready, crash or hang as they are told, and no
container ever runs.`,
		Example: `  # Start a sandbox, use it, stop it.
  sandbox up --detach
  sandbox kubectl get nodes
  sandbox down

  # A second one beside it.
  sandbox up --data-dir /tmp/other`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Without it, cobra takes the name of a missing subcommand for an argument.
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&r.dataDir, "data-dir", "",
		"where the sandbox lies (default $"+DataDirEnv+", else tidekeeper-sandbox in $XDG_STATE_HOME or ~/.local/state)")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())
	})
	cmd.AddCommand(
		newUp(r), newDown(r), newStatus(r), newKubectl(r), newKubeconfig(r),
		newAddNodes(r), newNode(r), newComponent(r), newProxy(r), newLinks(),
	)
	return cmd
}

// dir returns the directory of the sandbox.
func (r *root) dir() (cluster.Dir, error) {
	for _, dir := range []string{r.dataDir, os.Getenv(DataDirEnv)} {
		if dir != "" {
			return cluster.Abs(dir)
		}
	}
	return cluster.DefaultDir()
}

// client reaches the API server of the running sandbox.
func (r *root) client(ctx context.Context) (kubernetes.Interface, error) {
	dir, err := r.dir()
	if err != nil {
		return nil, err
	}
	if _, err := dir.Status(ctx); err != nil {
		return nil, err
	}
	config, err := dir.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}

// group makes a command that only holds others.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return fmt.Errorf("unknown command %q for %q: see '%s --help'", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return cmd
}

// arguments wants exactly the named arguments.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no arguments"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		return fmt.Errorf("wanted %s, got %d arguments: see '%s --help'", want, len(args), cmd.CommandPath())
	}
}
