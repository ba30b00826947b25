// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"

	"github.com/spf13/cobra"
)

// Options holds the flags and arguments of a command. The methods are the three steps of running
// the command, as in kubectl.
type Options interface {
	// Complete parses the arguments, and sets defaults from the kubeconfig.
	Complete(cmd *cobra.Command, args []string) error
	// Validate rejects invalid and contradictory flags. It must not send requests to the cluster.
	Validate() error
	// Run runs the command.
	Run(ctx context.Context) error
}

// RunE returns a cobra run function that calls Complete, Validate and Run, until one of them fails.
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
