// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/drain"
)

// NodeBlockers describes the effect of draining a node: the number of pods that would leave, and
// the pods that block the drain.
type NodeBlockers struct {
	// Pool is the node's pool. It is empty if the user selected the node by name.
	Pool string `json:"pool,omitempty"`
	Node string `json:"node"`
	// Pods is the number of pods that a drain would move or delete.
	Pods int `json:"pods"`
	// Blockers lists the pods that a drain could not move, or not without disruption.
	Blockers []drain.Blocker `json:"blockers"`
	// AtMost lists the pod constraints that were not evaluated. They may prevent more pods from
	// being rescheduled.
	AtMost []string `json:"atMost,omitempty"`
}

// Blockers returns the blockers of draining each member of each pool. If names is not empty, it
// returns only the blockers of the named nodes.
func (r *Room) Blockers(world *drain.World, names []string, now time.Time) []NodeBlockers {
	on := map[string][]*corev1.Pod{}
	for _, pod := range r.Pods {
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
	}
	byName := map[string]*corev1.Node{}
	for _, node := range r.Nodes {
		byName[node.Name] = node
	}
	all := []NodeBlockers{}
	add := func(pool string, members []string) {
		for _, name := range members {
			all = append(all, r.blockersOf(world, pool, byName[name], on[name], now))
		}
	}
	if len(names) > 0 {
		add("", names)
		return all
	}
	for _, pool := range r.Pools {
		add(pool.Name, pool.Members)
	}
	return all
}

func (r *Room) blockersOf(world *drain.World, pool string, node *corev1.Node, running []*corev1.Pod, now time.Time) NodeBlockers {
	of := NodeBlockers{Pool: pool, Node: node.Name, Pods: drain.Leaving(running), Blockers: slices.Concat([]drain.Blocker{}, world.Blockers(node, running, now))}
	of.AddLoss(r.Cluster.Lose([]string{node.Name}, nil))
	return of
}

// AddLoss adds a blocker for each workload with pods that would fit nowhere without the node.
func (n *NodeBlockers) AddLoss(loss capacity.Loss) {
	n.AtMost = loss.AtMost
	for _, w := range loss.WithoutPlace {
		n.Blockers = append(n.Blockers, drain.Blocker{
			Reason: drain.NoPlace, Namespace: w.Namespace, Workload: w.Workload, Count: w.Pods,
			Message: fmt.Sprintf("no other node has room for %d of its pods", w.Pods), Advice: "add a node, or free some room: kubectl tide pools fit",
		})
	}
	drain.Sort(n.Blockers)
}
