// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"

	"github.com/spf13/cobra"
)

// Options has the flags and arguments of a command. Its methods are the three steps of a command, the same as
// in kubectl.
type Options interface {
	// Complete fills in the arguments and the defaults from the kubeconfig.
	Complete(cmd *cobra.Command, args []string) error
	// Validate returns an error for contradictory flags. It sends no request to the cluster.
	Validate() error
	// Run runs the command.
	Run(ctx context.Context) error
}

// RunE returns a function for cobra that runs the three steps.
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
