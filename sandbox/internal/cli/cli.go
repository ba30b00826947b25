// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the sandbox command: one file per subcommand.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
)

// DataDirEnv names the data directory when --data-dir is not set.
const DataDirEnv = "SANDBOX_DATA_DIR"

// Main runs the command and returns the exit code.
func Main() int {
	Silence()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return execute(ctx, newRoot())
}

// Silence keeps client libraries from logging what our own errors say, and forgets the flags that
// the compiled-in programs registered for themselves.
func Silence() {
	klog.SetLogger(klog.New(nil))
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	pflag.CommandLine = pflag.NewFlagSet("sandbox", pflag.ContinueOnError)
}

// execute runs a command and returns the exit code.
func execute(ctx context.Context, cmd *cobra.Command) int {
	if err := cmd.ExecuteContext(ctx); err != nil {
		if code := exitError(0); errors.As(err, &code) {
			return int(code)
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted")
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "error:", err)
		return 1
	}
	return 0
}

// exitError is the exit code of a program that this command ran, which has said itself
// what went wrong.
type exitError int

func (c exitError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// root holds what all subcommands share.
type root struct{ dataDir string }

func newRoot() *cobra.Command {
	r := &root{}
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "A real Kubernetes control plane on this machine, with simulated nodes",
		Long: `A real Kubernetes control plane on this machine, with simulated nodes.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl are
the upstream programs, compiled into this binary. Nodes and what runs on them
are simulated: pods become ready, crash or hang as their annotations say, and
no container ever runs, except on the nodes of 'up --real-nodes'.`,
		Example: `  # Start a sandbox, use it, stop it.
  sandbox up --detach
  sandbox kubectl get nodes
  sandbox down

  # A second one beside it.
  sandbox up --data-dir /tmp/other`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		// Without it, cobra takes the name of a missing subcommand for an argument.
		Args: r.unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&r.dataDir, "data-dir", "",
		"the data directory of the sandbox (default $"+DataDirEnv+", else tidekeeper-sandbox in $XDG_STATE_HOME or ~/.local/state)")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see '%s --help'", describeFlagError(err), cmd.CommandPath())
	})
	cmd.AddCommand(
		newUp(r), newDown(r), newStatus(r), newKubectl(r), newKubeconfig(r),
		newNodes(r), newComponent(r), newSnapshot(r),
		newRun(r), newProxy(r), newExplore(nil), newFuzz(nil), newReplay(),
	)
	return cmd
}

// version names this build and the Kubernetes in it.
func version() string {
	build := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		build = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && (build == "" || build == "(devel)") {
				build = setting.Value[:min(len(setting.Value), 12)]
			}
		}
	}
	return fmt.Sprintf("sandbox %s, Kubernetes %s", build, cluster.KubernetesVersion())
}

// unknownCommand refuses arguments of the command itself, with a hint at what may be
// meant.
func (r *root) unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("see '%s --help'", cmd.CommandPath())
	if dir, err := r.dir(); err == nil && strings.TrimSuffix(args[0], "s") == "log" {
		hint = "the logs of the components are in " + dir.Logs()
	} else if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = fmt.Sprintf("did you mean %s? %s", strings.Join(similar, " or "), hint)
	}
	return fmt.Errorf("unknown command %q for %q: %s", args[0], cmd.CommandPath(), hint)
}

// describeFlagError says what kind of value a flag wants, instead of which function could
// not parse it.
func describeFlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	wants := map[string]string{"int": "a whole number", "bool": "true or false", "duration": "a duration like 500ms, 2s or 1m30s"}
	want, known := wants[invalid.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
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

// running returns the directory of the sandbox, and its state. It is an error if it does not run.
func (r *root) running(ctx context.Context) (cluster.Dir, cluster.Status, error) {
	dir, err := r.dir()
	if err != nil {
		return dir, cluster.Status{}, err
	}
	status, err := dir.Control().Status(ctx)
	return dir, status, err
}

// client reaches the API server of the running sandbox.
func (r *root) client(ctx context.Context) (kubernetes.Interface, error) {
	dir, _, err := r.running(ctx)
	if err != nil {
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

// arguments requires exactly the named arguments.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no arguments"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		return fmt.Errorf("requires %s, got %d arguments: see '%s --help'", want, len(args), cmd.CommandPath())
	}
}
