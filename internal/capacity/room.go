// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Causes lists the possible causes why new pods cannot use the free resources of a node. If several
// causes apply to a node, the first in this list counts.
var Causes = []tidekeeperv1.LostCause{
	tidekeeperv1.LostBeingDeleted, tidekeeperv1.LostNotReady, tidekeeperv1.LostCordoned, tidekeeperv1.LostOtherTaint, tidekeeperv1.LostPodLimitReached,
}

// Room describes the resources of a group of nodes, split into resources that new pods can use and
// resources that are lost to them. Allocatable is the sum of Usable and Lost. Free is the part of
// Usable that is not requested. An overcommitted node counts as full.
type Room struct {
	Nodes       int `json:"nodes"`
	UsableNodes int `json:"usableNodes"`

	Allocatable corev1.ResourceList `json:"allocatable"`
	Requested   corev1.ResourceList `json:"requested"`
	Usable      corev1.ResourceList `json:"usable"`
	Free        corev1.ResourceList `json:"free"`
	Lost        []tidekeeperv1.Lost `json:"lost"`

	// DaemonSets is the sum of the requests of all DaemonSet pods on the nodes.
	DaemonSets corev1.ResourceList `json:"daemonSets"`
	// EmptyNode is the usable node that would have the most free resources if only DaemonSet pods
	// ran on it, together with these resources.
	EmptyNode tidekeeperv1.LargestFit `json:"emptyNode,omitzero"`
	// LargestFits lists the free resources of the nodes that currently have the most of a resource
	// free, as an upper bound of the requests that fit on a single node.
	LargestFits []tidekeeperv1.LargestFit `json:"largestFits"`
}

// Members is a group of nodes of a cluster, such as the members of a pool.
type Members struct {
	axes    *axes
	classes *classes
	nodes   []*node // sorted by name
}

// Room returns the resources of the nodes, split into usable and lost resources. own lists the
// pool's own taints, which its pods are assumed to tolerate.
func (m *Members) Room(own []corev1.Taint) Room {
	a, offered := m.axes, m.offered()
	l := Room{Nodes: len(m.nodes), Lost: []tidekeeperv1.Lost{}}
	allocatable, requested, usable, free, daemons := a.zero(), a.zero(), a.zero(), a.zero(), a.zero()
	lost, count := map[tidekeeperv1.LostCause]vector{}, map[tidekeeperv1.LostCause]int32{}
	open := &usableNodes{axes: a, offered: offered}
	for _, n := range m.nodes {
		allocatable.add(n.allocatable)
		requested.add(n.requested())
		daemons.add(n.daemonSets)
		cause := CauseOf(n.object, own, m.takesAnotherPod(n))
		if cause == "" {
			open.nodes = append(open.nodes, n)
		} else {
			count[cause]++
			if lost[cause] == nil {
				lost[cause] = a.zero()
			}
		}
		for i := range a.names {
			u, f, l := Split(cause, n.allocatable[i], n.allocatable[i]-n.free[i])
			usable[i] += u
			free[i] += f
			if l > 0 {
				lost[cause][i] += l
			}
		}
	}
	l.UsableNodes = len(open.nodes)
	l.Allocatable, l.Requested = a.list(allocatable, offered), a.list(requested, offered)
	l.Usable, l.Free, l.DaemonSets = a.list(usable, offered), a.list(free, offered), a.list(daemons, offered)
	for _, cause := range Causes {
		if count[cause] > 0 {
			l.Lost = append(l.Lost, tidekeeperv1.Lost{Cause: cause, Nodes: count[cause], Resources: a.list(lost[cause], offered)})
		}
	}
	l.LargestFits, l.EmptyNode = open.largestFits(), open.emptyNode()
	return l
}

// Utilization returns the requests of the nodes' pods, as amounts and as percentages of the
// allocatable amounts. Requests for a resource that the pod's node does not offer are left out.
// Both results are nil if there are no nodes.
func (m *Members) Utilization() (requested corev1.ResourceList, percent map[corev1.ResourceName]int32) {
	if len(m.nodes) == 0 {
		return nil, nil
	}
	var sum, allocatable resources.Sums
	for _, n := range m.nodes {
		for i, resource := range m.axes.names {
			if a := n.allocatable[i]; a > 0 {
				sum.AddN(resources.Amount{Resource: resource, Value: a - n.free[i]}, 1)
				allocatable.AddN(resources.Amount{Resource: resource, Value: a}, 1)
			}
		}
	}
	return sum.List(), resources.Percent(sum, allocatable)
}

// Zones returns the sorted names of the nodes' zones.
func (m *Members) Zones() (zones []string) {
	for _, n := range m.nodes {
		if zone := n.zone(); zone != "" {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// offered returns the resources that any of the nodes offers, in the order of the axes.
func (m *Members) offered() []corev1.ResourceName {
	var names []corev1.ResourceName
	for i, name := range m.axes.names {
		if slices.ContainsFunc(m.nodes, func(n *node) bool { return n.allocatable[i] > 0 }) {
			names = append(names, name)
		}
	}
	return names
}

// takesAnotherPod reports whether the node has fewer pods than its allocatable resource "pods"
// permits.
func (m *Members) takesAnotherPod(n *node) bool {
	i, known := m.axes.index[corev1.ResourcePods]
	return known && n.free[i] > 0
}

// CauseOf returns the reason why the node currently accepts no pods, not even small pods that
// tolerate the pool's own taints. It returns "" if the node accepts pods. takesPod must be false if
// the node has reached its pod limit.
func CauseOf(n *corev1.Node, own []corev1.Taint, takesPod bool) tidekeeperv1.LostCause {
	foreign := func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(own, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value })
	}
	switch {
	case !n.DeletionTimestamp.IsZero():
		return tidekeeperv1.LostBeingDeleted
	case !nodes.IsReady(n):
		return tidekeeperv1.LostNotReady
	case n.Spec.Unschedulable:
		return tidekeeperv1.LostCordoned
	case slices.ContainsFunc(n.Spec.Taints, foreign):
		return tidekeeperv1.LostOtherTaint
	case !takesPod:
		return tidekeeperv1.LostPodLimitReached
	}
	return ""
}

// Split divides a node's allocatable amount of a resource into a usable part and a part lost
// because of the given cause. free is the part of usable that is not requested. An overcommitted
// node counts as full.
func Split(cause tidekeeperv1.LostCause, allocatable, requested int64) (usable, free, lost int64) {
	left := max(0, allocatable-requested)
	switch cause {
	case "":
		return allocatable, left, 0
	case tidekeeperv1.LostPodLimitReached:
		// The node accepts no new pods, but its existing pods continue to use the requested part.
		return allocatable - left, 0, left
	default:
		return 0, 0, allocatable
	}
}
