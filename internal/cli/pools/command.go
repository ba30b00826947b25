// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pools is kubectl tide pools.
//
//   - command.go: the commands
//   - list.go: the list, and how it changes
//   - contexts.go: the list of several clusters
//   - describe.go: a pool in detail
//   - used.go, used_show.go: the usage of nodes, by metrics.k8s.io
//   - room.go: the cluster as the questions about capacity need it
//   - fit.go, fit_pod.go: how many copies of a pod each pool takes
//   - pending.go: which pool could take the pending pods
//   - loss.go: whether the pods of lost nodes find another place
//   - blockers.go, blockers_try.go: the pods that would not leave a node that is drained
//   - plan.go, manifests.go, plan_print.go: the changes that applying a manifest would make
package pools

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// poolKind has the names of node pools that a command line accepts.
var poolKind = cmdutil.Kind{Name: "NodePool", Group: tidekeeperv1.SchemeGroupVersion.Group, Resources: []string{"nodepool", "nodepools", "npool", "np"}}

func emptyList() client.ObjectList { return &tidekeeperv1.NodePoolList{} }

// NewCommand returns the command pools, which lists NodePools, with its subcommands.
func NewCommand(e *cmdutil.Env) *cobra.Command {
	cmd := newListCommand(e)
	cmd.AddCommand(newDescribeCommand(e), newPlanCommand(e), newFitCommand(e), newLossCommand(e), newBlockersCommand(e), newPendingCommand(e))
	return cmd
}
