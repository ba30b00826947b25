// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"tidekeeper.dev/tidekeeper/internal/version"
)

// app is what all commands share.
type app struct {
	in          io.Reader
	out, errOut io.Writer
	flags       *genericclioptions.ConfigFlags
	screen      screen
	now         func() time.Time
	local       *time.Location
}

// Run runs the plugin and returns its exit code. args begin with the name that
// it was called by.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// What libraries log is no answer to what was asked.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(stderr, rest.WarningWriterOptions{Deduplicate: true}))

	a := &app{
		in: stdin, out: stdout, errOut: stderr, flags: genericclioptions.NewConfigFlags(true),
		screen: screenOf(stdout), now: time.Now, local: time.Local,
	}
	name, rest := "kubectl-tide", []string{}
	if len(args) > 0 {
		name, rest = filepath.Base(args[0]), args[1:]
	}
	if name == completer {
		rest = append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	cmd := a.command()
	cmd.SetArgs(rest)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		return a.fail(ctx, err)
	}
	return 0
}

// shownFlags are the flags of kubectl that help lists; the others work too.
var shownFlags = map[string]bool{"kubeconfig": true, "context": true, "namespace": true, "request-timeout": true, "as": true}

func (a *app) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-tide",
		Short: "Node pools, scheduled restarts and pod start-up of a cluster",
		Long: `kubectl tide shows and steers what Tidekeeper keeps: the scheduled restarts of
workloads and the pools of nodes. It also shows how pods come up, on any cluster.

Exit codes: 0 done, 1 an error, 3 no such object, 4 the cluster cannot be
reached, 5 not allowed, 6 the cluster does not know Tidekeeper's kinds.`,
		Example: `  kubectl tide pools                          # the water level
  kubectl tide pools plan -f worker.yaml      # what applying it would do
  kubectl tide restarts -A                    # what ran, what is next
  kubectl tide restarts --older-than 24h      # not restarted with success for a day
  kubectl tide restarts next --for 24h -A     # the calendar of the coming day
  kubectl tide restarts now web -n shop
  kubectl tide pods watch -l app=web          # each transition as it happens
  kubectl tide pods slow -A                   # the slowest starters, and why
  kubectl tide restarts explain "0 3 * * 1-5" --time-zone Europe/Berlin`,
		Version:           version.String(),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl tide"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              noArguments,
		RunE:              help,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	cmd.SetVersionTemplate("kubectl tide {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	a.flags.CacheDir, a.flags.DisableCompression = nil, nil
	a.flags.AddFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !shownFlags[f.Name] })
	a.completeFlags(cmd)
	cmd.AddCommand(a.poolsCommand(), a.restartsCommand(), a.podsCommand(), a.migrateCommand(), a.completionCommand())
	return cmd
}

// help is what a command does that only has commands below it.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noArguments refuses arguments, as misspelt commands.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see " + cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = "did you mean " + similar[0] + "?"
	}
	return fmt.Errorf("unknown command %q for %q: %s", args[0], cmd.CommandPath(), hint)
}

// oneName wants the name of one object.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s wants one name, and got %d: see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}
