// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// admission evaluates the constraints between pods while the pods of lost nodes are placed on other
// nodes. It changes the cluster's counters of pods by topology domain, so undo must be called at
// the end.
type admission struct {
	classes *classes
	// spreads lists the counters that topology spread constraints of the pods read.
	spreads []*counter
	// needed contains all counters that constraints of pods read which do not run yet.
	needed sets.Set[*counter]
	// ports maps each node to the host ports of the pods placed on it.
	ports map[*node][]hostPort
	// changes lists the changes of counters, so that undo can reverse them.
	changes []change
	lost    []*node
	// volumes evaluates the constraints on volumes; nil if there are none.
	volumes *volumeAdmission
}

// change records that `by` pods were added to a domain of a counter.
type change struct {
	counter *counter
	domain  int32
	by      int
}

// newAdmission returns an admission for placing the pods in `homeless`, which need another node
// because their nodes are lost. It returns nil if there are no constraints between these pods and
// other pods, and none on their volumes.
func newAdmission(of *classes, homeless []pod, lost []*node) *admission {
	volumes := newVolumeAdmission(of.storage, homeless, lost)
	constrained := func(p pod) bool { return of.rulesOf(p.class) != nil }
	if volumes == nil && !slices.ContainsFunc(homeless, constrained) {
		return nil
	}
	a := &admission{classes: of, lost: lost, volumes: volumes, changes: of.relations.changes[:0]}
	of.relations.changes = nil
	for _, p := range homeless {
		rules := of.rulesOf(p.class)
		if rules == nil {
			continue
		}
		for _, s := range rules.spreads {
			if !slices.Contains(a.spreads, s.counter) {
				a.spreads = append(a.spreads, s.counter)
			}
		}
		if p.node == nil {
			if a.needed == nil {
				a.needed = sets.New[*counter]()
			}
			a.needed.Insert(rules.counters()...)
		}
	}
	for _, n := range lost {
		for _, p := range n.pods {
			for _, c := range of.relations.selectingOf(p) {
				if !c.local { // No pod is placed on a lost node.
					a.change(c, n, -1)
				}
			}
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
	return rules.admits(n, append(used, a.ports[n]...))
}

// place counts a pod that was placed on the node, and records the host ports of the pod.
func (a *admission) place(p pod, n *node) {
	if a == nil {
		return
	}
	for _, c := range a.selecting(p) {
		a.change(c, n, 1)
	}
	a.volumes.place(p, n)
	if rules := a.classes.rulesOf(p.class); rules != nil && len(rules.ports) > 0 {
		if a.ports == nil {
			a.ports = map[*node][]hostPort{}
		}
		a.ports[n] = append(a.ports[n], rules.ports...)
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
		c.counter.change(c.domain, -c.by)
	}
	a.classes.relations.changes = a.changes
}

// selecting returns the counters that select a pod. For a running pod, they are known. A pod that does
// not run yet is compared with all counters that matter to such pods.
func (a *admission) selecting(p pod) []*counter {
	if p.node != nil {
		return a.classes.relations.selectingOf(p)
	}
	return slices.DeleteFunc(a.needed.UnsortedList(), func(c *counter) bool { return !c.selects(p) })
}

// change adds `by` to the count of the node's domain.
func (a *admission) change(c *counter, n *node, by int) {
	if domain, is := c.domain(n); is {
		c.change(domain, by)
		a.changes = append(a.changes, change{c, domain, by})
	}
}

func (a *admission) countNode(n *node, by int) {
	for _, c := range a.spreads {
		c.addNode(n, by)
	}
}
