// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DryRun is the value of the flag --dry-run.
type DryRun string

// Values of [DryRun].
const (
	DryRunNone   DryRun = "none"
	DryRunServer DryRun = "server"
)

// AddTo adds the flag --dry-run to a command.
func (d *DryRun) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "dry-run", string(DryRunNone), "none or server; with server, the API server only validates the request and changes nothing")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{string(DryRunNone), string(DryRunServer)}, cobra.ShellCompDirectiveNoFileComp))
}

// Validate rejects unknown values of the flag --dry-run.
func (d *DryRun) Validate() error {
	if *d != DryRunNone && *d != DryRunServer {
		return fmt.Errorf("--dry-run=%s: write none or server", *d)
	}
	return nil
}

// PatchOptions returns the options for every patch request: the field manager and, for
// --dry-run=server, the option for a dry run.
func (d *DryRun) PatchOptions() []client.PatchOption {
	options := []client.PatchOption{client.FieldOwner(FieldManager)}
	if *d == DryRunServer {
		options = append(options, client.DryRunAll)
	}
	return options
}

// Suffix returns the phrase that marks the output of a dry run, as in kubectl. It is "" without a
// dry run.
func (d *DryRun) Suffix() string {
	if *d == DryRunServer {
		return " (server dry run)"
	}
	return ""
}
