// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freezes is kubectl tide freeze and kubectl tide thaw.
//
//   - command.go: shared by both
//   - freeze.go: creates a Freeze
//   - thaw.go: deletes a Freeze
//   - actions.go: freeze and thaw for the local page
//   - read.go: reads Freezes for other commands
package freezes

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// freezeKind has the names of the kind that a command line accepts.
var freezeKind = cmdutil.Kind{
	Name: "Freeze", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"freeze", "freezes"},
}

func emptyList() client.ObjectList { return &tidekeeperv1.FreezeList{} }

// NewCommands returns the commands freeze and thaw.
func NewCommands(e *cmdutil.Env) []*cobra.Command {
	return []*cobra.Command{newFreezeCommand(e), newThawCommand(e)}
}

// displayName names an object as kubectl does.
func displayName(name string) string { return "freeze.tidekeeper.dev/" + name }

// dryRun is the value of the flag --dry-run.
type dryRun string

func (d *dryRun) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "dry-run", "none", "none or server; with server, the API server only validates the request and changes nothing")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

func (d *dryRun) validate() error {
	if *d != "none" && *d != "server" {
		return fmt.Errorf("--dry-run=%s: write none or server", *d)
	}
	return nil
}

// suffix marks a dry run in the output, as kubectl does.
func (d *dryRun) suffix() string {
	if *d == "server" {
		return " (server dry run)"
	}
	return ""
}
