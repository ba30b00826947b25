// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli implements the sandbox command. Each subcommand has its own file.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
)

// DataDirEnv is the environment variable that names the data directory if --data-dir is not set.
const DataDirEnv = "SANDBOX_DATA_DIR"

// Main runs the command and returns the exit code.
func Main() int {
	Silence()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return execute(ctx, newRoot())
}

// Silence disables the logs of client libraries, because this command reports the same errors
// itself. It also removes the flags that the compiled-in programs have registered.
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

// exitError is an exit code for which this command prints no error message, because the error has
// already been reported. An example is the exit code of a program that this command has run.
type exitError int

func (c exitError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func newRoot() *cobra.Command {
	s := &target{}
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
		// Without this function, cobra would treat a misspelled subcommand as an argument.
		Args: func(cmd *cobra.Command, args []string) error { return unknownCommand(cmd, args, s.logs()) },
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&s.dataDir, "data-dir", "",
		"the data directory of the sandbox (default $"+DataDirEnv+", else tidekeeper-sandbox in $XDG_STATE_HOME or ~/.local/state)")
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see '%s --help'", describeFlagError(err), cmd.CommandPath())
	})
	cmd.AddCommand(
		newUp(s), newDown(s), newStatus(s), newKubectl(s), newKubeconfig(s),
		newNodes(s), newComponent(s), newSnapshot(s),
		newRun(s), newProxy(s), newExplore(nil), newFuzz(nil), newReplay(), newDemo(),
	)
	return cmd
}

// released is the version of a release build, which the linker sets. It is empty in other builds.
var released string

// version returns the version of this build and the version of Kubernetes that is compiled into it.
func version() string {
	build := cmp.Or(released, "(devel)")
	if info, ok := debug.ReadBuildInfo(); ok && released == "" {
		build = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && (build == "" || build == "(devel)") {
				build = setting.Value[:min(len(setting.Value), 12)]
			}
		}
	}
	return fmt.Sprintf("sandbox %s, Kubernetes %s", build, cluster.KubernetesVersion())
}

// unknownCommand returns an error that names an unknown subcommand and suggests the most similar
// subcommand. The parameter "logs" is the directory of the component logs, or "" if it is unknown.
func unknownCommand(cmd *cobra.Command, args []string, logs string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("see '%s --help'", cmd.CommandPath())
	if logs != "" && strings.TrimSuffix(args[0], "s") == "log" {
		hint = "the logs of the components are in " + logs
	} else if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = fmt.Sprintf("did you mean %s? %s", strings.Join(similar, " or "), hint)
	}
	return fmt.Errorf("unknown command %q for %q: %s", args[0], cmd.CommandPath(), hint)
}

// describeFlagError replaces the error for an invalid flag value. The new error names the expected
// kind of value, such as a number, instead of the parse function that failed. Other errors are
// returned unchanged.
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

// group returns a command that does nothing by itself and only has subcommands.
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

// atLeastOne requires at least one positional argument. The parameter "argument" describes it in
// the error message.
func atLeastOne(argument string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("requires %s: see '%s --help'", argument, cmd.CommandPath())
		}
		return nil
	}
}

// arguments requires exactly as many positional arguments as there are names. The names describe
// the arguments in the error message.
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
