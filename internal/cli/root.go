// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"tidekeeper.dev/tidekeeper/internal/cli/check"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/dashboard"
	"tidekeeper.dev/tidekeeper/internal/cli/freezes"
	"tidekeeper.dev/tidekeeper/internal/cli/maintenance"
	"tidekeeper.dev/tidekeeper/internal/cli/migrate"
	"tidekeeper.dev/tidekeeper/internal/cli/pods"
	"tidekeeper.dev/tidekeeper/internal/cli/pools"
	"tidekeeper.dev/tidekeeper/internal/cli/restarts"
	"tidekeeper.dev/tidekeeper/internal/options"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/version"
)

// Run runs the plugin and returns its exit code. args[0] is the name of the executable, such as
// kubectl-tide.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// Silence library logging.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(stderr, rest.WarningWriterOptions{Deduplicate: true}))

	e := &cmdutil.Env{
		In: stdin, Console: cmdutil.Console{Out: stdout, ErrOut: stderr, Screen: term.ScreenOf(stdout)},
		Kubeconfig: cmdutil.Kubeconfig{Flags: genericclioptions.NewConfigFlags(true)}, Now: time.Now, Local: time.Local,
	}
	name, rest := "kubectl-tide", []string{}
	if len(args) > 0 {
		name, rest = filepath.Base(args[0]), args[1:]
	}
	if name == completer {
		rest = append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	cmd := newCommand(e)
	cmd.SetArgs(rest)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		return e.Console.Fail(ctx, err)
	}
	return 0
}

// shownFlags is the set of kubectl flags that the help lists. The plugin accepts kubectl's other
// connection flags, too.
var shownFlags = map[string]bool{"kubeconfig": true, "context": true, "namespace": true, "request-timeout": true, "as": true}

// Command returns the command tree for generating docs/reference. The commands must not be run.
func Command() *cobra.Command {
	return newCommand(&cmdutil.Env{Kubeconfig: cmdutil.Kubeconfig{Flags: genericclioptions.NewConfigFlags(true)}, Now: time.Now, Local: time.UTC})
}

func newCommand(e *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-tide",
		Short: "Node pools, maintenance, scheduled restarts and pod start-up of a cluster",
		Long: `kubectl tide shows node pools, maintenance of nodes and scheduled restarts, previews changes
to pools, requests, suspends and resumes restarts, and freezes all of them. It also shows how
pods start up, on any cluster.

kubectl's other connection flags, such as --server, --cluster, --user, --token and
--as-group, work too.

Exit codes: 0 success, 1 error, or a cluster of --contexts could not be read, 2 a plan found
changes, a loss would leave pods without a place, a forecast found ticks that will be missed or
a round that will not be through before the next, a gate is closed or a migration needs manual
steps, 3 object not found, 4 cluster unreachable, 5 not allowed, 6 the cluster does not serve
Tidekeeper's kinds, 130 interrupted.`,
		Example: `  kubectl tide pools                          # requested resources, ready nodes
  kubectl tide pools plan -f worker.yaml      # preview of kubectl apply
  kubectl tide pools --contexts prod,edge     # pools of several clusters
  kubectl tide maintenance                    # rounds of maintenance, node by node
  kubectl tide restarts -A                    # last and next restarts
  kubectl tide restarts --older-than 24h      # a pod is older than a day
  kubectl tide restarts next --for 24h -A     # the next 24 hours, by minute
  kubectl tide restarts forecast -A           # which ticks will be missed, and why
  kubectl tide restarts gates web -n shop     # would it start now?
  kubectl tide restarts now web -n shop
  kubectl tide freeze --until 4h --reason "database migration"
  kubectl tide pods watch -l app=web          # each transition as it happens
  kubectl tide pods slow -A                   # the slowest starts, and why
  kubectl tide restarts explain "0 3 * * 1-5" --time-zone Europe/Berlin
  kubectl tide check                          # is a manager running, what am I allowed to do
  kubectl tide dashboard                      # a local web page`,
		Version:           version.String(),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl tide"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cmdutil.NoArguments,
		RunE:              help,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	cmd.SetVersionTemplate("kubectl tide {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", options.FlagError(err), cmd.CommandPath())
	})
	e.Kubeconfig.Flags.CacheDir, e.Kubeconfig.Flags.DisableCompression = nil, nil
	e.Kubeconfig.Flags.AddFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !shownFlags[f.Name] })
	verbosity := 0
	cmd.PersistentFlags().IntVarP(&verbosity, "v", "v", 0, "log level of the client libraries, as for kubectl: 6 shows requests")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return setLogging(verbosity) }
	completeFlags(e, cmd)
	cmd.AddCommand(pools.NewCommand(e), maintenance.NewCommand(e), restarts.NewCommand(e), pods.NewCommand(e), migrate.NewCommand(e), check.NewCommand(e), dashboard.NewCommand(e), newCompletionCommand(e))
	cmd.AddCommand(freezes.NewCommands(e)...)
	return cmd
}

// help is the run function of a command that only has subcommands. It prints the command's help.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// setLogging sets the log verbosity of the Kubernetes client libraries.
func setLogging(verbosity int) error {
	if verbosity <= 0 {
		return nil
	}
	klog.ClearLogger()
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", strconv.Itoa(verbosity))
}
