// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tidekeeper runs the Tidekeeper manager (internal/manager). Its subcommands check an
// installation, and clean up before its removal (internal/installation). This package only defines
// the command line.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	ctrl "sigs.k8s.io/controller-runtime"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/manager"
	"tidekeeper.dev/tidekeeper/internal/options"
	"tidekeeper.dev/tidekeeper/internal/version"
)

func main() {
	// The first SIGTERM or SIGINT starts a graceful shutdown; the second ends the process
	// immediately.
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		// Print each joined error on its own line.
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintln(stderr, "Error:", strings.TrimRight(line, "\n"))
		}
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	opts := manager.NewOptions()
	cmd := &cobra.Command{
		Use:     "tidekeeper [flags]",
		Short:   "Runs the Tidekeeper manager",
		Version: version.String(),
		Args:    onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manager.Run(cmd.Context(), opts)
		},
		// The function run prints the error. A usage message would make the error hard to find.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w: see tidekeeper --help", options.FlagError(err))
	})

	sets := opts.Flags()
	for _, name := range sets.Order {
		cmd.Flags().AddFlagSet(sets.FlagSets[name])
	}
	cliflag.SetUsageAndHelpFunc(cmd, sets, 0)
	cmd.AddCommand(newCheck(), newCleanup())
	cmd.Long = description(opts.Definitions(), cmd.Commands())
	return cmd
}

// description returns the part of the --help output before the flags. It describes the purpose of
// each controller, and the subcommands.
func description(controllers []controller.Definition, commands []*cobra.Command) string {
	var b strings.Builder
	b.WriteString(`tidekeeper runs the Tidekeeper manager: it keeps the labels, annotations and taints
of node pools on their nodes, and restarts workloads on a schedule.

Controllers:
`)
	list := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range controllers {
		note := ""
		if c.OffByDefault {
			note = " Off by default."
		}
		fmt.Fprintf(list, "  %s\t%s%s\n", c.Name, c.Purpose, note)
	}
	list.Flush()
	b.WriteString("\nOther commands:\n")
	for _, cmd := range commands {
		fmt.Fprintf(list, "  tidekeeper %s\t%s\n", cmd.Name(), cmd.Short)
	}
	list.Flush()
	return b.String()
}
