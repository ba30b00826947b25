// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"encoding/json"
	"slices"

	"tidekeeper.dev/tidekeeper/internal/nodepool/preview"
)

// NodeGroup is a group of nodes with equal planned changes.
type NodeGroup struct {
	Names []string
	preview.Node
}

// GroupNodes groups nodes with equal planned changes, the largest group first.
func GroupNodes(nodes []preview.Node) []*NodeGroup {
	var groups []*NodeGroup
	known := map[string]*NodeGroup{}
	for _, n := range nodes {
		name := n.Name
		n.Name = ""
		change, err := json.Marshal(n)
		if err != nil {
			panic("a preview is always JSON: " + err.Error())
		}
		g := known[string(change)]
		if g == nil {
			g = &NodeGroup{Node: n}
			known[string(change)] = g
			groups = append(groups, g)
		}
		g.Names = append(g.Names, name)
	}
	slices.SortStableFunc(groups, func(a, b *NodeGroup) int { return len(b.Names) - len(a.Names) })
	return groups
}

// EachNode returns a separate group for each node, in the order of the plan.
func EachNode(nodes []preview.Node) []*NodeGroup {
	var groups []*NodeGroup
	for _, n := range nodes {
		groups = append(groups, &NodeGroup{Names: []string{n.Name}, Node: n})
	}
	return groups
}

// PodGroup is a group of a workload's pods with the same outcome.
type PodGroup struct {
	preview.Pod     // example pod without its node, and without its name if it has an owner
	Pods, Nodes int // number of pods, and of nodes that they are on
}

// GroupPods groups pods by workload and outcome. Among groups with the same outcome, the largest
// comes first.
func GroupPods(pods []preview.Pod) []PodGroup {
	type group struct {
		pods  int
		nodes map[string]bool
	}
	known := map[preview.Pod]*group{}
	var order []preview.Pod
	for _, p := range pods {
		node := p.Node
		p.Node = ""
		if p.Owner != "" {
			p.Name = ""
		}
		g := known[p]
		if g == nil {
			g = &group{nodes: map[string]bool{}}
			known[p] = g
			order = append(order, p)
		}
		g.pods++
		g.nodes[node] = true
	}
	groups := make([]PodGroup, 0, len(order))
	for _, p := range order {
		groups = append(groups, PodGroup{p, known[p].pods, len(known[p].nodes)})
	}
	slices.SortStableFunc(groups, func(a, b PodGroup) int { return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), b.Pods-a.Pods) })
	return groups
}
