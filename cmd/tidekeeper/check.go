// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/installation"
	"tidekeeper.dev/tidekeeper/internal/manager"
)

// newCheck returns the subcommand check, which verifies an installation. `helm test` runs it.
func newCheck() *cobra.Command {
	opts := manager.NewOptions()
	timeout := time.Minute
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that a manager can work, and that a manager leads",
		Long: `tidekeeper check checks that the cluster has Tidekeeper's kinds, that these
credentials have the rights that the controllers need, and that a manager leads.
helm test runs it.`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return installation.Check(cmd.Context(), opts, timeout, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, opts, &timeout, "a manager leads",
		manager.FlagKubeconfig, manager.FlagControllers, manager.FlagOptionalWatches, manager.FlagNamespaces, manager.FlagLeaderElectNamespace)
	return cmd
}
