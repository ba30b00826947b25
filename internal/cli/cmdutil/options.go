// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"

	"github.com/spf13/cobra"
)

// Options are the flags and arguments of a command, and its actions with
// them, in the three steps that kubectl's own commands have.
type Options interface {
	// Complete takes in the arguments and the defaults of the kubeconfig.
	Complete(cmd *cobra.Command, args []string) error
	// Validate refuses contradictory flags, before any request to the cluster.
	Validate() error
	// Run reads from the cluster, and prints or changes something.
	Run(ctx context.Context) error
}

// RunE returns the function that a command runs.
func RunE(o Options) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := o.Complete(cmd, args); err != nil {
			return err
		}
		if err := o.Validate(); err != nil {
			return err
		}
		return o.Run(cmd.Context())
	}
}
