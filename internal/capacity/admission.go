// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import "k8s.io/apimachinery/pkg/util/sets"

// admission evaluates the constraints between pods while the pods of lost nodes are placed on other
// nodes. It changes the cluster's counters of pods by topology domain, so undo must be called at
// the end.
type admission struct {
	classes  *classes
	counters []*counter
	// ports maps each node to the host ports of the pods placed on it.
	ports map[*node][]hostPort
	// changes lists the pods that were added to or removed from the counters, so that undo can
	// reverse this.
	changes []change
	lost    []*node
	// volumes evaluates the constraints on volumes; nil if there are none.
	volumes *volumeAdmission
}

// change records that a pod on a node was added to the counters (by is 1) or removed from them (by
// is -1).
type change struct {
	pod  pod
	node *node
	by   int
}

// newAdmission returns an admission for placing the pods in `homeless`, which need another node
// because their nodes are lost. It returns nil if there are no constraints between these pods and
// other pods, and none on their volumes.
func newAdmission(of *classes, homeless []pod, lost []*node) *admission {
	needed := sets.New[*counter]()
	volumes := newVolumeAdmission(of.storage, homeless, lost)
	constrained := volumes != nil
	for _, p := range homeless {
		if rules := of.rulesOf(p.class); rules != nil {
			constrained = true
			needed.Insert(rules.counters()...)
		}
	}
	if !constrained {
		return nil
	}
	a := &admission{classes: of, counters: needed.UnsortedList(), ports: map[*node][]hostPort{}, lost: lost, volumes: volumes}
	for _, n := range lost {
		for _, p := range n.pods {
			a.count(p, n, -1)
		}
		a.countNode(n, -1)
	}
	return a
}

// constrains reports whether there are constraints between the pod and other pods, or on its
// volumes.
func (a *admission) constrains(p pod) bool {
	return a != nil && (a.classes.rulesOf(p.class) != nil || a.volumes.demandOf(p) != nil)
}

// admits reports whether the constraints between pods and on volumes admit the pod to the node.
func (a *admission) admits(p pod, n *node) bool {
	if !a.constrains(p) {
		return true
	}
	if !a.volumes.admits(p, n) {
		return false
	}
	rules := p.class.rules
	if rules == nil {
		return true
	}
	used := a.classes.relations.usedPorts(rules, n)
	return rules.refusal(n, append(used, a.ports[n]...)) == ""
}

// place counts a pod that was placed on the node, and records the host ports of the pod.
func (a *admission) place(p pod, n *node) {
	if a == nil {
		return
	}
	a.count(p, n, 1)
	a.volumes.place(p, n)
	if ports := hostPortsOf(&p.object.Spec); len(ports) > 0 {
		a.ports[n] = append(a.ports[n], ports...)
	}
}

// undo restores the counters of the cluster, which newAdmission and the placed pods have changed.
func (a *admission) undo() {
	if a == nil {
		return
	}
	for _, n := range a.lost {
		a.countNode(n, 1)
	}
	for _, c := range a.changes {
		for _, counter := range a.counters {
			counter.add(c.pod, c.node, -c.by)
		}
	}
}

func (a *admission) count(p pod, n *node, by int) {
	a.changes = append(a.changes, change{p, n, by})
	for _, c := range a.counters {
		c.add(p, n, by)
	}
}

func (a *admission) countNode(n *node, by int) {
	for _, c := range a.counters {
		c.addNode(n, by)
	}
}
