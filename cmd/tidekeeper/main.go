// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tidekeeper runs the Tidekeeper manager, and what an installation needs
// besides. What it does is all in internal/manager; this is only the command
// line.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	ctrl "sigs.k8s.io/controller-runtime"

	"tidekeeper.dev/tidekeeper/internal/manager"
	"tidekeeper.dev/tidekeeper/internal/version"
)

func main() {
	// The first SIGTERM or SIGINT stops in order, a second one at once.
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		// One line for each thing that is wrong.
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintln(stderr, "Error:", strings.TrimRight(line, "\n"))
		}
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	opts := manager.DefaultOptions()
	cmd := &cobra.Command{
		Use:     "tidekeeper [flags]",
		Short:   "Runs the Tidekeeper manager",
		Long:    "tidekeeper runs the Tidekeeper manager: the controllers that keep node pools in shape.",
		Version: version.String(),
		Args:    onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manager.Run(cmd.Context(), opts)
		},
		// run prints errors, and a usage text would bury them.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w: see tidekeeper --help", err)
	})

	sets := opts.Flags()
	for _, name := range sets.Order {
		cmd.Flags().AddFlagSet(sets.FlagSets[name])
	}
	cliflag.SetUsageAndHelpFunc(cmd, sets, 0)
	cmd.AddCommand(newCheck(), newCleanup())
	return cmd
}
