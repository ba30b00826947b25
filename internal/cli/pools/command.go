// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pools implements kubectl tide pools.
//
//	command.go                          the command and its subcommands
//	list.go                             the list of pools, and following its changes
//	contexts.go                         the list of several clusters' pools
//	describe.go, members.go             a pool's details, and its nodes
//	used.go, used_show.go               the measured usage of nodes, from metrics.k8s.io
//	room.go                             common flags of fit, loss, pending and blockers; reading
//	                                    nodes and pods
//	fit.go, fit_pod.go                  how many copies of a pod fit into each pool
//	pending.go                          which pools could take the pending pods
//	preemption.go                       priorities and budgets, and the pods that preemption would evict
//	loss.go                             whether the pods of lost nodes fit on other nodes
//	loss_sequence.go                    losses one after the other, cordons, and the surge of rollouts
//	volumes.go                          reading the storage objects that volumes of pods depend on
//	devices.go                          reading the devices that ResourceClaims of pods depend on
//	template.go                         spec.nodeTemplate from sample nodes and objects
//	blockers.go, blockers_try.go        the pods that block draining a node
//	plan.go, manifests.go,              the changes that applying a manifest would cause
//	plan_print.go
package pools

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// poolKind lists the names by which the command line refers to NodePools.
var poolKind = cmdutil.Kind{Name: "NodePool", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"nodepool", "nodepools", "npool", "np"}}

func emptyList() client.ObjectList { return &tidekeeperv1.NodePoolList{} }

// NewCommand returns the command pools and its subcommands. Without a subcommand, it lists
// NodePools.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	cmd := newListCommand(e)
	cmd.AddCommand(newDescribeCommand(e), newPlanCommand(e), newFitCommand(e), newLossCommand(e), newBlockersCommand(e), newPendingCommand(e), newTemplateCommand(e))
	return cmd
}
