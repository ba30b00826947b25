// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/drain"
)

// NodeBlockers says what would happen if a node was drained.
type NodeBlockers struct {
	// Pool is empty if the node was given by name.
	Pool string `json:"pool,omitempty"`
	Node string `json:"node"`
	// Pods is the number of pods that a drain would move or delete.
	Pods int `json:"pods"`
	// Blockers are the pods that would not leave, or not without harm.
	Blockers []drain.Blocker `json:"blockers"`
	// AtMost lists the constraints of pods that were not evaluated, because of which fewer pods may find a
	// place.
	AtMost []string `json:"atMost,omitempty"`
}

// Blockers returns the blockers of the members of each pool, or of the named nodes if there are some.
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
	of := NodeBlockers{Pool: pool, Node: node.Name, Blockers: []drain.Blocker{}}
	for _, pod := range running {
		if drain.Leaves(pod) {
			of.Pods++
		}
	}
	of.Blockers = append(of.Blockers, world.Blockers(node, running, now)...)
	loss := r.Cluster.Lose([]string{node.Name}, nil)
	of.AtMost = loss.AtMost
	for _, w := range loss.WithoutPlace {
		of.Blockers = append(of.Blockers, drain.Blocker{
			Reason: drain.NoPlace, Namespace: w.Namespace, Workload: w.Workload, Count: w.Pods,
			Message: fmt.Sprintf("no other node has room for %d of its pods", w.Pods), Advice: "add a node, or free some room: kubectl tide pools fit",
		})
	}
	drain.Sort(of.Blockers)
	return of
}
