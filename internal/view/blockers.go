// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
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
	// Blockers lists the pods that a drain could not move at all, or only with a disruption.
	Blockers []drain.Blocker `json:"blockers"`
	// AtMost lists the pod constraints that were not evaluated. They may prevent more pods from
	// being rescheduled.
	AtMost []string `json:"atMost,omitempty"`
}

// Blockers returns, for each node of each pool, the pods that block draining the node. If names is
// not empty, it evaluates only the named nodes, without regard to pools.
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

// AddLoss adds a blocker for each workload with pods that fit on no other node. loss is the effect
// of losing the node. AddLoss also sets n.AtMost from loss.
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

// KeepsFromMaintenance returns the reason why the pods of a node prevent its drain from beginning.
// Such a pod would not be recreated by a controller, or would fit on no other node. The result is
// nil if there is no such pod, or if the spec of the NodeMaintenance allows the drain nevertheless.
func (r *Room) KeepsFromMaintenance(m *tidekeeperv1.NodeMaintenance, world *drain.World, node string, now time.Time) *Status {
	for _, of := range r.Blockers(world, []string{node}, now) {
		for _, b := range of.Blockers {
			unmanaged := b.Reason == drain.NoController && m.Spec.UnmanagedPods != tidekeeperv1.UnmanagedPodsEvict
			homeless := b.Reason == drain.NoPlace && (m.Spec.RequirePlace == nil || *m.Spec.RequirePlace)
			if unmanaged || homeless {
				return &Status{Reason: string(b.Reason), Message: b.Namespace + "/" + b.Workload + ": " + b.Message}
			}
		}
	}
	return nil
}
