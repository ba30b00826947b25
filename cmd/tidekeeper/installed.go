// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"tidekeeper.dev/tidekeeper/internal/manager"
)

// newCheck is what helm test runs.
func newCheck() *cobra.Command {
	opts := manager.DefaultOptions()
	timeout := time.Minute
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether a manager can do its work, and does",
		Long: `tidekeeper check asks the cluster whether it has Tidekeeper's kinds, whether these
credentials may do what the controllers cannot do without, and whether a manager
leads. It is what helm test runs.`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manager.Check(cmd.Context(), opts, timeout, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, &opts, &timeout, "a manager leads", "kubeconfig", "controllers", "namespaces", "leader-elect-resource-namespace")
	return cmd
}

// newCleanup is what helm uninstall runs before it takes the manager away.
func newCleanup() *cobra.Command {
	opts := manager.DefaultOptions()
	timeout := 4 * time.Minute
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Delete all node pools, and wait until their nodes are clean",
		Long: `tidekeeper cleanup deletes all node pools and waits until a running manager has
taken off their nodes what they had put there. It is what helm uninstall runs first.`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return manager.Cleanup(cmd.Context(), opts, timeout, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, &opts, &timeout, "they are gone", "kubeconfig")
	return cmd
}

// addFlags adds those of the manager's flags that the command has too, and how
// long it may take.
func addFlags(cmd *cobra.Command, opts *manager.Options, timeout *time.Duration, until string, names ...string) {
	var sets cliflag.NamedFlagSets
	own := sets.FlagSet(cmd.Name())
	own.DurationVar(timeout, "timeout", *timeout, "how long to wait until "+until)
	for _, set := range opts.Flags().FlagSets {
		for _, name := range names {
			if flag := set.Lookup(name); flag != nil {
				own.AddFlag(flag)
			}
		}
	}
	cmd.Flags().AddFlagSet(own)
	cliflag.SetUsageAndHelpFunc(cmd, sets, 0)
}

func onlyFlags(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown argument %q: %s takes only flags, see %[2]s --help", args[0], cmd.CommandPath())
	}
	return nil
}
