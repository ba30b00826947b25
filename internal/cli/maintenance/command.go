// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance implements kubectl tide maintenance, the commands for NodeMaintenances. The
// manager carries out a NodeMaintenance in rounds. In each round, every selected node is maintained
// once.
//
//	command.go                      the command and its subcommands
//	list.go                         the list of NodeMaintenances, also of several clusters, and
//	                                following its changes
//	targets.go                      selecting NodeMaintenances by name or label
//	describe.go, describe_print.go  a round in detail, node by node
//	forecast.go, forecast_print.go  when the round will end
//	read.go                         reading the nodes, pools, Freezes and pods that a round depends
//	                                on
//	suspend.go                      suspending and resuming a NodeMaintenance
//	done.go                         ending the maintenance of nodes
package maintenance

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// maintenanceKind lists the names by which the command line refers to NodeMaintenances.
var maintenanceKind = cmdutil.Kind{
	Name: "NodeMaintenance", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"nodemaintenance", "nodemaintenances", "nmaint"},
}

// nodeKind lists the names by which the command line refers to nodes.
var nodeKind = cmdutil.Kind{Name: "Node", Resources: []string{"node", "nodes", "no"}}

const (
	// ControllerName is the name of the controller that carries out NodeMaintenances. It is off by
	// default.
	ControllerName = "node-maintenance"
	// thenNotDrained is the consequence to print if no manager leads, or if the leader does not run
	// the NodeMaintenance controller.
	thenNotDrained = "no node is drained, and none is put back into use, until it does"
)

func emptyList() client.ObjectList { return &tidekeeperv1.NodeMaintenanceList{} }

// NewCommand returns the command maintenance and its subcommands. Without a subcommand, it lists
// NodeMaintenances.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	cmd := newListCommand(e)
	cmd.AddCommand(newDescribeCommand(e), newForecastCommand(e), newSuspendCommand(e), newResumeCommand(e), newDoneCommand(e))
	return cmd
}

// displayName returns the name of a NodeMaintenance as kubectl prints it.
func displayName(m *tidekeeperv1.NodeMaintenance) string {
	return "nodemaintenance.tidekeeper.dev/" + m.Name
}
