// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/internal/installation"
	"tidekeeper.dev/tidekeeper/internal/manager"
)

// newCleanup returns the subcommand cleanup, which deletes Tidekeeper's node pools and node
// maintenances. `helm uninstall` runs it before it deletes the manager.
func newCleanup() *cobra.Command {
	opts := manager.NewOptions()
	timeout := 4 * time.Minute
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Delete all node pools and node maintenances, and wait until their nodes are cleaned",
		Long: `tidekeeper cleanup deletes all node pools and node maintenances, and waits until a running
manager has removed the pools' labels, annotations and taints from the nodes, and has
uncordoned the nodes of the maintenances. helm uninstall runs it first.`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return installation.Cleanup(cmd.Context(), opts, timeout, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, opts, &timeout, "all of them are deleted", manager.FlagKubeconfig)
	return cmd
}
