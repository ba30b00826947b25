// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// needs holds the constraints of a pod that other objects than nodes and pods determine: its volumes
// and its devices. Each is nil if there are none.
type needs struct {
	volumes *demand
	devices *deviceDemand
}

// needsOf returns the needs of a pod that does not run yet.
func (c *classes) needsOf(object *corev1.Pod) needs {
	return needs{c.storage.demandOf(object, false), c.devices.demandOf(object)}
}

// limit reduces the number of copies of the pod that fit on a node, and returns what limits the
// number. If `empty` is set, only the pods of DaemonSets are on the node.
func (s needs) limit(n *node, empty bool, copies int64, by string) (int64, string) {
	copies, by = s.volumes.limit(n, empty, copies, by)
	return s.devices.limit(n, empty, copies, by)
}

// refusals returns the reasons why a node takes no copy of the pod, regardless of its other pods.
func (s needs) refusals(n *corev1.Node) []string {
	return append(s.volumes.refusalsOfAll(n), s.devices.refusals(n)...)
}

// admitsFirst reports whether a node, if it is empty, accepts the first copy of the pod.
func (s needs) admitsFirst(n *node) bool { return len(s.volumes.refusals(n.object)) == 0 }

// first returns the nodes that accept copies, or none if no node accepts the first copy.
func (s needs) first(free nodeFits, refusals map[Count]int) nodeFits {
	return s.volumes.first(free, refusals)
}

// single returns the name of the constraint that limits the cluster to one copy of the pod, or ""
// if there is none.
func (s needs) single() string { return s.volumes.single() }

// conflict returns the reason why no node takes the pod because of another pod, or "" if there is
// none.
func (s needs) conflict() string { return s.volumes.conflict() }

// uncertain lists the constraints that are not evaluated because something about a node is not
// known.
func (s needs) uncertain(n *node) []string {
	return append(s.volumes.uncertain(n), s.devices.uncertain(n)...)
}

// complete applies the constraints that apply to all nodes together. free lists the nodes that
// accept copies.
func (s needs) complete(f *Fit, free nodeFits) {
	s.volumes.complete(f, free)
	s.devices.complete(f, free)
}

// keyOf returns a string that is equal for pods with the same needs.
func (c *classes) keyOf(object *corev1.Pod) string {
	key := c.storage.keyOf(object)
	if d := c.devices.demandOf(object); d != nil {
		key = cmp.Or(key, "\x00") + d.key
	}
	return key
}
