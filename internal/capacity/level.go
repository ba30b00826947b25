// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/nodes"
)

// Cause is why a node's resources cannot be used by new pods.
type Cause string

// The causes, in the order in which the first that applies counts.
const (
	BeingDeleted Cause = "BeingDeleted"
	NotReady     Cause = "NotReady"
	Cordoned     Cause = "Cordoned"
	// ForeignTaint is a taint with the effect NoSchedule or NoExecute that the pool does not
	// ask for.
	ForeignTaint Cause = "ForeignTaint"
	// NoPodSlot: the node has as many pods as it may have, so what is free cannot be used.
	NoPodSlot Cause = "NoPodSlot"
)

// causes in their order.
var causes = []Cause{BeingDeleted, NotReady, Cordoned, ForeignTaint, NoPodSlot}

// Level is what a group of nodes has, and what of it new pods can use. Allocatable is Usable
// and what is lost together; Free is what is usable and not requested. A node on which more is
// requested than it has counts as full.
type Level struct {
	Nodes       int `json:"nodes"`
	UsableNodes int `json:"usableNodes"`

	Allocatable corev1.ResourceList `json:"allocatable"`
	Requested   corev1.ResourceList `json:"requested"`
	Usable      corev1.ResourceList `json:"usable"`
	Free        corev1.ResourceList `json:"free"`
	Lost        []Lost              `json:"lost"`

	// DaemonSets is what pods of DaemonSets request, on all nodes.
	DaemonSets corev1.ResourceList `json:"daemonSets"`
	// EmptyNode is what the largest usable node would have left with pods of DaemonSets only.
	EmptyNode Slot `json:"emptyNode,omitzero"`
	// Slots are the largest pods that fit now; see [Slot].
	Slots []Slot `json:"slots"`
}

// Lost is what cannot be used for one cause.
type Lost struct {
	Cause     Cause               `json:"cause"`
	Nodes     int                 `json:"nodes"`
	Resources corev1.ResourceList `json:"resources"`
}

// Level returns the level of the nodes of these names. Taints that are among own are those of
// the pool itself: its pods tolerate them.
func (c *Cluster) Level(names []string, own []corev1.Taint) Level {
	members := c.members(names)
	offered := c.offered(members)
	l := Level{Nodes: len(members), Lost: []Lost{}, Slots: []Slot{}}
	allocatable, requested, usable, free, daemons := c.zero(), c.zero(), c.zero(), c.zero(), c.zero()
	lost, count := map[Cause]vector{}, map[Cause]int{}
	lose := func(cause Cause, v vector) {
		if lost[cause] == nil {
			lost[cause] = c.zero()
		}
		lost[cause].add(v)
		count[cause]++
	}
	var open []*node
	for _, n := range members {
		allocatable.add(n.allocatable)
		requested.add(n.requested())
		daemons.add(n.daemonSets)
		if cause := causeOf(n.object, own); cause != "" {
			lose(cause, n.allocatable)
			continue
		}
		if c.noPodSlot(n) {
			// What is requested is in use all the same.
			left := n.left()
			lose(NoPodSlot, left)
			usable.add(n.allocatable)
			usable.subtract(left)
			continue
		}
		l.UsableNodes++
		usable.add(n.allocatable)
		free.add(n.left())
		open = append(open, n)
	}
	l.Allocatable, l.Requested = c.list(allocatable, offered), c.list(requested, offered)
	l.Usable, l.Free, l.DaemonSets = c.list(usable, offered), c.list(free, offered), c.list(daemons, offered)
	for _, cause := range causes {
		if count[cause] > 0 {
			l.Lost = append(l.Lost, Lost{cause, count[cause], c.list(lost[cause], offered)})
		}
	}
	l.Slots = c.slots(open, offered)
	l.EmptyNode = c.emptyNode(open, offered)
	return l
}

// causeOf returns why no pod that tolerates the pool's own taints is placed on the node,
// whatever is free there; "" if one is.
func causeOf(n *corev1.Node, own []corev1.Taint) Cause {
	switch {
	case !n.DeletionTimestamp.IsZero():
		return BeingDeleted
	case !nodes.IsReady(n):
		return NotReady
	case n.Spec.Unschedulable:
		return Cordoned
	case slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(own, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value })
	}):
		return ForeignTaint
	}
	return ""
}

// noPodSlot reports whether the node may not have one more pod.
func (c *Cluster) noPodSlot(n *node) bool {
	i, known := c.index[corev1.ResourcePods]
	return known && n.free[i] <= 0
}

// left returns what is free on the node, at least 0 of each resource.
func (n *node) left() vector {
	left := make(vector, len(n.free))
	for i := range left {
		left[i] = max(0, n.free[i])
	}
	return left
}

func (n *node) requested() vector {
	v := slices.Clone(n.allocatable)
	v.subtract(n.free)
	return v
}

func ofDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && owner.Kind == "DaemonSet"
}
