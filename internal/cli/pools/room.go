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
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
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
	list, err := listPools(ctx, c)
	if err != nil {
		return nil, err
	}
	asked := list.Items
	if len(o.names) > 0 {
		var missing string
		if asked, missing = pick(list.Items, slices.Sorted(slices.Values(o.names))); missing != "" {
			return nil, cmdutil.NotFound(poolKind.Name, "", missing)
		}
	}
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes, cmdutil.FromCache()); err != nil {
		return nil, err
	}
	all, err := cmdutil.AllPods(ctx, c)
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(all))
	for i := range all {
		pods[i] = &all[i]
	}
	r := &room{cluster: capacity.New(nodes.Items, pods), nodes: nodes.Items}
	for i := range asked {
		selector, err := plan.Selector(&asked[i])
		if err != nil {
			continue // Its status says so.
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

// vectorText is a resource list in words, CPU and memory first: "6 CPU, 11Gi memory". Pods and
// storage are left out.
func vectorText(list corev1.ResourceList) string {
	var texts []string
	add := func(name corev1.ResourceName) {
		label := string(name)
		if name == corev1.ResourceCPU {
			label = "CPU"
		}
		texts = append(texts, resources.Human(name, list[name])+" "+label)
	}
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, name := range first {
		if _, has := list[name]; has {
			add(name)
		}
	}
	var others []corev1.ResourceName
	for name, amount := range list {
		if !slices.Contains(first, name) && name != corev1.ResourcePods && name != corev1.ResourceEphemeralStorage && !amount.IsZero() {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		add(name)
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, ", ")
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
