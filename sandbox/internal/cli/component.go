// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
)

func newComponent(s *target) *cobra.Command {
	action := func(name, short, done string) *cobra.Command {
		return &cobra.Command{
			Use:       name + " NAME",
			Short:     short,
			Example:   "  sandbox component " + name + " " + component.APIServer,
			Args:      arguments("NAME"),
			ValidArgs: cluster.Components,
			RunE: func(cmd *cobra.Command, args []string) error {
				dir, err := s.dir()
				if err != nil {
					return err
				}
				if err := dir.Control().Act(cmd.Context(), args[0], name); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s.\n", args[0], done)
				return nil
			},
		}
	}
	return group(&cobra.Command{
		Use:   "component",
		Short: "Kill, pause, resume and start the components of a sandbox",
		Long: `Kill, pause, resume and start the components of a sandbox, which are
` + strings.Join(cluster.Components, ", ") + `,
and the real nodes, which are named real-1, real-2 ...; killing one is like
cutting its power.`,
	},
		action("kill", "Kill a component (SIGKILL)", "was killed"),
		action("pause", "Pause a component (SIGSTOP)", "is paused"),
		action("resume", "Continue a paused component", "runs again"),
		action("start", "Start a component that was killed or has crashed", "was started"),
	)
}
