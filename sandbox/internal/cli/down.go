// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newDown(s *target) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop a sandbox",
		Long: `Stop a sandbox, and return when the last of its processes is gone.

What is in it is kept in the data directory for the next 'up'.`,
		Example: `  sandbox down
  sandbox down --data-dir /tmp/other`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			ran, err := dir.Control().Stop(cmd.Context())
			if err != nil {
				return err
			}
			if ran {
				fmt.Fprintf(cmd.OutOrStdout(), "The sandbox in %s has stopped. Its objects are kept for the next up; up --fresh drops them.\n", dir)
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "No sandbox runs in %s.\n", dir)
			}
			return nil
		},
	}
}
