// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodes"
)

// room is the cluster as the questions about capacity need it.
type room struct {
	cluster *capacity.Cluster
	nodes   []corev1.Node
	pools   []poolMembers
}

// poolMembers is a pool with the names of its nodes.
type poolMembers struct {
	*tidekeeperv1.NodePool
	members []string
}

// roomOptions are those that the questions about capacity share.
type roomOptions struct {
	*cmdutil.Env
	output cmdutil.DataOutput

	names []string // of pools; none: all
}

// Complete is part of [cmdutil.Options].
func (o *roomOptions) Complete(_ *cobra.Command, args []string) (err error) {
	o.names, err = poolKind.Names(args)
	return err
}

// Validate is part of [cmdutil.Options].
func (o *roomOptions) Validate() error { return o.output.Validate() }

// read reads the pools that are asked for, by name, and all nodes and pods.
func (o *roomOptions) read(ctx context.Context, c client.Client) (*room, error) {
	all, err := listPools(ctx, c)
	if err != nil {
		return nil, err
	}
	asked := all.Items
	if len(o.names) > 0 {
		var missing string
		if asked, missing = pick(all.Items, slices.Sorted(slices.Values(o.names))); missing != "" {
			return nil, cmdutil.NotFound(poolKind.Name, "", missing)
		}
	}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list, cmdutil.FromCache()); err != nil {
		return nil, err
	}
	running, err := cmdutil.AllPods(ctx, c)
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(running))
	for i := range running {
		pods[i] = &running[i]
	}
	r := &room{cluster: capacity.New(nodes.Pointers(list.Items), pods), nodes: list.Items}
	for i := range asked {
		selector, err := plan.Selector(&asked[i])
		if err != nil {
			o.Note(fmt.Sprintf("NodePool %s is left out: %s", asked[i].Name, err))
			continue
		}
		r.pools = append(r.pools, poolMembers{&asked[i], membersOf(r.nodes, selector)})
	}
	return r, nil
}

// membersOf returns the names of the nodes that a selector matches.
func membersOf[N any, P interface {
	*N
	metav1.Object
}](nodes []N, selector labels.Selector) []string {
	var members []string
	for i := range nodes {
		if node := P(&nodes[i]); selector.Matches(labels.Set(node.GetLabels())) {
			members = append(members, node.GetName())
		}
	}
	return members
}

// countsText is how many nodes each thing is true of: "cordoned (2), taint x:NoSchedule (1)".
func countsText(counts []capacity.Count) string {
	if len(counts) == 0 {
		return "-"
	}
	texts := make([]string, len(counts))
	for i, c := range counts {
		texts[i] = fmt.Sprintf("%s (%d)", c.What, c.Nodes)
	}
	return strings.Join(texts, ", ")
}
