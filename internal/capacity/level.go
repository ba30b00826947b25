// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/nodes"
)

// Causes of a loss, in the order in which the first that applies counts.
var Causes = []tidekeeperv1.LostCause{
	tidekeeperv1.LostBeingDeleted, tidekeeperv1.LostNotReady, tidekeeperv1.LostCordoned, tidekeeperv1.LostOtherTaint, tidekeeperv1.LostPodLimitReached,
}

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
	Lost        []tidekeeperv1.Lost `json:"lost"`

	// DaemonSets is what pods of DaemonSets request, on all nodes.
	DaemonSets corev1.ResourceList `json:"daemonSets"`
	// EmptyNode is what the largest usable node would have left with pods of DaemonSets only.
	EmptyNode tidekeeperv1.LargestFit `json:"emptyNode,omitzero"`
	// LargestFits are the largest pods that fit now.
	LargestFits []tidekeeperv1.LargestFit `json:"largestFits"`
}

// Level returns the level of the nodes of these names. Taints that are among own are those of
// the pool itself: its pods tolerate them.
func (c *Cluster) Level(names []string, own []corev1.Taint) Level {
	members := c.members(names)
	offered := c.offered(members)
	l := Level{Nodes: len(members), Lost: []tidekeeperv1.Lost{}, LargestFits: []tidekeeperv1.LargestFit{}}
	allocatable, requested, usable, free, daemons := c.zero(), c.zero(), c.zero(), c.zero(), c.zero()
	lost, count := map[tidekeeperv1.LostCause]vector{}, map[tidekeeperv1.LostCause]int32{}
	var open []*node
	for _, n := range members {
		allocatable.add(n.allocatable)
		requested.add(n.requested())
		daemons.add(n.daemonSets)
		cause := CauseOf(n.object, own, c.takesAnotherPod(n))
		if cause == "" {
			l.UsableNodes++
			open = append(open, n)
		} else {
			count[cause]++
			if lost[cause] == nil {
				lost[cause] = c.zero()
			}
		}
		for i := range c.names {
			u, f, l := Split(cause, n.allocatable[i], n.allocatable[i]-n.free[i])
			usable[i] += u
			free[i] += f
			if l > 0 {
				lost[cause][i] += l
			}
		}
	}
	l.Allocatable, l.Requested = c.list(allocatable, offered), c.list(requested, offered)
	l.Usable, l.Free, l.DaemonSets = c.list(usable, offered), c.list(free, offered), c.list(daemons, offered)
	for _, cause := range Causes {
		if count[cause] > 0 {
			l.Lost = append(l.Lost, tidekeeperv1.Lost{Cause: cause, Nodes: count[cause], Resources: c.list(lost[cause], offered)})
		}
	}
	l.LargestFits = c.largestFits(open, offered)
	l.EmptyNode = c.emptyNode(open, offered)
	return l
}

// NodeLevel returns what pods request of what a node offers, and the utilization of the node in
// whole percent; nothing for a node that does not exist.
func (c *Cluster) NodeLevel(name string) (requested corev1.ResourceList, percent map[corev1.ResourceName]int32) {
	n, known := c.byName[name]
	if !known {
		return nil, nil
	}
	var sum, allocatable resources.Sums
	for i, resource := range c.names {
		if a := n.allocatable[i]; a > 0 {
			sum.AddN(resources.Amount{Resource: resource, Value: a - n.free[i]}, 1)
			allocatable.AddN(resources.Amount{Resource: resource, Value: a}, 1)
		}
	}
	return sum.List(), resources.Percent(sum, allocatable)
}

// CauseOf returns why no pod that tolerates the pool's own taints is placed on the node now,
// however little it requests; "" if one is.
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

// Split returns what of one resource of a node is usable, free, and lost for the cause. A node
// on which more is requested than it has counts as full.
func Split(cause tidekeeperv1.LostCause, allocatable, requested int64) (usable, free, lost int64) {
	left := max(0, allocatable-requested)
	switch cause {
	case "":
		return allocatable, left, 0
	case tidekeeperv1.LostPodLimitReached:
		// What is requested is in use all the same.
		return allocatable - left, 0, left
	default:
		return 0, 0, allocatable
	}
}

// takesAnotherPod reports whether the node may have one more pod.
func (c *Cluster) takesAnotherPod(n *node) bool {
	i, known := c.index[corev1.ResourcePods]
	return known && n.free[i] > 0
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
