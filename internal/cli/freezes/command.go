// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freezes implements kubectl tide freeze and kubectl tide thaw.
//
//	command.go  common code of both commands
//	freeze.go   creating a Freeze
//	thaw.go     deleting a Freeze
//	actions.go  freeze and thaw for the dashboard
//	read.go     reading Freezes for other commands
package freezes

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// freezeKind lists the names by which the command line refers to Freezes.
var freezeKind = cmdutil.Kind{
	Name: "Freeze", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"freeze", "freezes"},
}

func emptyList() client.ObjectList { return &tidekeeperv1.FreezeList{} }

// NewCommands returns the commands freeze and thaw.
func NewCommands(e *cmdutil.Env) []*cobra.Command {
	return []*cobra.Command{newFreezeCommand(e), newThawCommand(e)}
}

// displayName returns the name of a Freeze as kubectl prints it.
func displayName(name string) string { return "freeze.tidekeeper.dev/" + name }
