// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Node is a state of a node.
type Node struct {
	Name string
	// Closed is true if no pod of a workload may be started on the node: it is cordoned, or has the
	// taint of the rotation.
	Closed bool
	// NotReady is true if the node's condition Ready is not.
	NotReady bool
}

// Rotation is a time in which a node was closed.
type Rotation struct {
	Node string
	// Closed is the time at which the node was closed; Empty at which no pod of a workload was left;
	// Open at which the node was opened again. Empty and Open are zero if that did not happen.
	Closed, Empty, Open time.Time
	// Pods is the number of pods of each workload that were on the node when it was closed.
	Pods map[string]int
}

// Rotations returns the rotations of nodes in ordered events, in the order in which the nodes were
// closed.
func Rotations(events []Event) []Rotation {
	var all []*Rotation
	closed := map[string]*Rotation{}           // the rotation that a closed node is in
	there := map[string]map[types.UID]string{} // the workloads of the pods on each node
	empty := func(r *Rotation, at time.Time) {
		if r != nil && r.Empty.IsZero() && len(there[r.Node]) == 0 {
			r.Empty = latest(at, r.Closed)
		}
	}
	for _, e := range events {
		switch {
		case e.Pod != nil && e.Pod.Node == "": // The pod is not scheduled yet.
		case e.Pod != nil && e.Pod.Gone:
			delete(there[e.Pod.Node], e.Pod.UID)
			empty(closed[e.Pod.Node], e.At)
		case e.Pod != nil:
			if there[e.Pod.Node] == nil {
				there[e.Pod.Node] = map[types.UID]string{}
			}
			there[e.Pod.Node][e.Pod.UID] = e.Pod.Workload
		case e.Node.Closed && closed[e.Node.Name] == nil:
			r := &Rotation{Node: e.Node.Name, Closed: e.At, Pods: map[string]int{}}
			for workload := range maps.Values(there[e.Node.Name]) {
				r.Pods[workload]++
			}
			closed[e.Node.Name] = r
			all = append(all, r)
			empty(r, e.At)
		case !e.Node.Closed && closed[e.Node.Name] != nil:
			closed[e.Node.Name].Open = e.At
			delete(closed, e.Node.Name)
		}
	}
	rotations := make([]Rotation, len(all))
	for i, r := range all {
		rotations[i] = *r
	}
	return rotations
}

// Stuck returns the nodes that were not empty before they were opened for the last time, in
// alphabetical order.
func Stuck(rotations []Rotation) []string {
	return nodesOf(rotations, func(last Rotation) bool { return last.Empty.IsZero() })
}

// LeftClosed returns the nodes that are still closed, in alphabetical order.
func LeftClosed(rotations []Rotation) []string {
	return nodesOf(rotations, func(last Rotation) bool { return last.Open.IsZero() })
}

// nodesOf returns the nodes whose last rotation has a property.
func nodesOf(rotations []Rotation, has func(last Rotation) bool) []string {
	last := map[string]Rotation{}
	for _, r := range rotations {
		last[r.Node] = r
	}
	var names []string
	for name, r := range last {
		if has(r) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Span returns the time from the first node that was closed to the last one that was opened again.
func Span(rotations []Rotation) time.Duration {
	var first, last time.Time
	for _, r := range rotations {
		if first.IsZero() || r.Closed.Before(first) {
			first = r.Closed
		}
		last = latest(last, r.Open)
	}
	return max(0, last.Sub(first))
}

// ToMove returns the number of pods that had to leave: all pods on the nodes when they were closed.
func ToMove(rotations []Rotation) int {
	pods := 0
	for _, r := range rotations {
		for n := range maps.Values(r.Pods) {
			pods += n
		}
	}
	return pods
}

// Pace describes how fast a world can be rotated.
type Pace struct {
	// Ready is the time from the creation of a pod until it is ready; Gone the time from its
	// deletion until it no longer exists.
	Ready, Gone time.Duration
	// AtOnce is the number of nodes that may be closed at a time.
	AtOnce int
}

// Least returns the least time in which the rotations are possible in their order, with the pods
// that were on the nodes, if no budget is violated and every workload has a ready pod at any time,
// and if requests and maintenance take no time.
//
// Of a workload that may lack pods, as many pods as its budget allows leave at once, and the next
// ones when their replacements are ready. The pods of any other workload leave when their
// replacements are ready, of which a rollout with the default strategy makes a quarter at a time.
func Least(workloads []Workload, rotations []Rotation, pace Pace) time.Duration {
	byName := map[string]Workload{}
	for _, w := range workloads {
		byName[w.Name] = w
	}
	free := make([]time.Duration, pace.AtOnce) // when each of the nodes that may be closed is open again
	complete := map[string]time.Duration{}     // when a workload has all its pods again
	for _, r := range rotations {
		slices.Sort(free)
		begin := free[0]
		for name, pods := range r.Pods {
			w := byName[name]
			from := max(begin, complete[name])
			var left time.Duration
			if spare := w.Replicas - max(w.Healthy, 1); spare > 0 {
				left = from + time.Duration(quotient(pods, spare)-1)*pace.Ready
				complete[name] = left + pace.Ready
			} else {
				left = from + time.Duration(quotient(pods, quotient(w.Replicas, 4)))*pace.Ready
				complete[name] = left
			}
			free[0] = max(free[0], left+pace.Gone)
		}
	}
	return slices.Max(free)
}

// quotient returns a/b, rounded up.
func quotient(a, b int) int { return (a + b - 1) / b }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
