// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// preemptor evaluates the preemption for a single pod. It changes nodes and counters of the
// cluster while it evaluates a node, and restores them before it returns.
type preemptor struct {
	pod   *corev1.Pod
	class *class
	rules *rules
	// volumes holds the constraints of the pod's volumes; nil if there are none.
	volumes *volumePreemptor
	// devices holds the constraints of the pod's devices; nil if there are none.
	devices  *deviceDemand
	counters sets.Set[*counter]
	members  *Members
	budgets  *Budgets
	// nominated maps nodes to the pending pods of at least the same priority for which the
	// scheduler has already made room there.
	nominated map[*node][]pod
}

func newPreemptor(c *Cluster, of *corev1.Pod, among []string, budgets *Budgets) *preemptor {
	requests, _ := c.classes.devices.requestsOf(of)
	p := &preemptor{
		pod: of, class: c.classes.create(of, requests), budgets: budgets, nominated: map[*node][]pod{},
		members: &Members{axes: c.axes, classes: c.classes, nodes: c.nodes},
	}
	if among != nil {
		p.members = c.Members(among)
	}
	needs := c.classes.needsOf(of)
	p.volumes, p.devices = newVolumePreemptor(needs.volumes, p.members.nodes), needs.devices
	if p.rules = c.classes.rulesOf(p.class); p.rules != nil {
		p.counters = sets.New(p.rules.counters()...)
	}
	for _, other := range c.pending {
		n := c.byName[other.Status.NominatedNodeName]
		if n != nil && PriorityOf(other) >= PriorityOf(of) && (other.Namespace != of.Namespace || other.Name != of.Name) {
			p.nominated[n] = append(p.nominated[n], pod{object: other, class: c.classes.of(other, nil), node: n})
		}
	}
	return p
}

// refuses reports whether a node refuses the pod regardless of the pods on it, so that evictions do
// not help. Nor do they if devices are missing: the scheduler does not expect any from victims.
func (p *preemptor) refuses(n *node) bool {
	return p.class.unknown != "" || len(p.class.refusals(n.object)) > 0 || p.volumes.refuses(n) || !p.devices.admits(n)
}

// admits reports whether the pod fits on a node. Like the scheduler, it requires that the pod also
// fits beside the pods that are nominated for the node.
func (p *preemptor) admits(n *node) bool {
	for _, other := range p.nominated[n] {
		p.add(other, n)
	}
	with := p.admitsAlone(n)
	for _, other := range p.nominated[n] {
		p.remove(other, n)
	}
	return with && (len(p.nominated[n]) == 0 || p.admitsAlone(n))
}

// admitsAlone is like admits, but ignores the pods that are nominated for the node.
func (p *preemptor) admitsAlone(n *node) bool {
	if p.refuses(n) || !n.free.covers(p.class.request) || !p.volumes.admits(n) {
		return false
	}
	return p.rules == nil || p.rules.admits(n, p.members.classes.relations.usedPorts(p.rules, n))
}

// add adds a pod to a node, and to the counters that the rules read.
func (p *preemptor) add(one pod, to *node) {
	to.pods = append(to.pods, one)
	to.free.subtract(one.class.request)
	for c := range p.counters {
		c.add(one, to, 1)
	}
}

// remove removes a pod from a node, and from the counters that the rules read.
func (p *preemptor) remove(one pod, from *node) {
	from.pods = slices.DeleteFunc(from.pods, func(other pod) bool { return other.object == one.object })
	from.free.add(one.class.request)
	for c := range p.counters {
		c.add(one, from, -1)
	}
}

// without calls `ask` while the given pods are removed from a node. `ask` may add some of them
// again and must return the pods that are still removed.
func (p *preemptor) without(list []pod, n *node, ask func() (removed []pod)) {
	before := n.pods
	n.pods = slices.Clone(before)
	for _, one := range list {
		p.remove(one, n)
	}
	for _, one := range ask() {
		p.add(one, n)
	}
	n.pods = before
}

// candidate is a node on which the pod fits after an eviction.
type candidate struct {
	node *node
	// victims lists the pods to evict, the most important pod first.
	victims []victim
	// ambiguous is true if a victim has the same rank as a pod that stays, so that the order in
	// which the scheduler knows them decides.
	ambiguous bool
}

// victim is a pod on a node, and the PodDisruptionBudget that its eviction violates, if any.
type victim struct {
	pod
	budget string
}

// candidate returns the pods that must be evicted so that the pod fits on the node, or nil if it
// does not fit even if all pods of lower priority are evicted. All of them are removed. Then each
// is added again if the pod still fits: the pods whose eviction violates a PodDisruptionBudget
// first, and the more important pods first.
func (p *preemptor) candidate(n *node) *candidate {
	var lower []pod
	for _, other := range n.pods {
		if PriorityOf(other.object) < PriorityOf(p.pod) {
			lower = append(lower, other)
		}
	}
	slices.SortStableFunc(lower, compareImportance)
	found := &candidate{node: n}
	p.without(lower, n, func() (removed []pod) {
		if !p.admits(n) {
			return lower
		}
		var kept []pod
		for _, v := range p.budgets.violatingFirst(lower) {
			p.add(v.pod, n)
			if p.admits(n) {
				kept = append(kept, v.pod)
				continue
			}
			p.remove(v.pod, n)
			found.victims, removed = append(found.victims, v), append(removed, v.pod)
		}
		found.ambiguous = slices.ContainsFunc(removed, func(v pod) bool {
			return slices.ContainsFunc(kept, func(k pod) bool { return compareImportance(v, k) == 0 })
		})
		return removed
	})
	if len(found.victims) == 0 {
		return nil
	}
	slices.SortStableFunc(found.victims, func(a, b victim) int { return compareImportance(a.pod, b.pod) })
	return found
}

// violations returns the number of victims whose eviction violates a PodDisruptionBudget; nil if
// the budgets are not known.
func (c *candidate) violations(budgets *Budgets) *int {
	if budgets == nil {
		return nil
	}
	count := 0
	for _, v := range c.victims {
		if v.budget != "" {
			count++
		}
	}
	return &count
}

// compare orders candidates by the scheduler's preference: fewest violated PodDisruptionBudgets, the
// lowest priority of the most important victim, the lowest sum of priorities, the fewest victims,
// and the latest start of the most important victims.
func (c *candidate) compare(other *candidate) int {
	rank := func(c *candidate) (violations int, highest int32, sum int64, start int64) {
		highest, start = PriorityOf(c.victims[0].object), math.MaxInt64
		for _, v := range c.victims {
			if v.budget != "" {
				violations++
			}
			// As in the scheduler, each summand is positive, so that a pod with a negative priority
			// also makes the sum larger.
			sum += int64(PriorityOf(v.object)) + math.MaxInt32 + 1
			if PriorityOf(v.object) == highest {
				start = min(start, startOf(v.object))
			}
		}
		return violations, highest, sum, start
	}
	violations, highest, sum, start := rank(c)
	violations2, highest2, sum2, start2 := rank(other)
	return cmp.Or(
		cmp.Compare(violations, violations2), cmp.Compare(highest, highest2), cmp.Compare(sum, sum2),
		cmp.Compare(len(c.victims), len(other.victims)), cmp.Compare(start2, start),
	)
}

// compareImportance orders pods by descending priority. Of two pods with the same priority, the pod
// that started earlier is more important.
func compareImportance(a, b pod) int {
	return cmp.Or(cmp.Compare(PriorityOf(b.object), PriorityOf(a.object)), cmp.Compare(startOf(a.object), startOf(b.object)))
}

// PriorityOf returns the priority of a pod, which is 0 if it is not set.
func PriorityOf(pod *corev1.Pod) int32 { return ptr.Deref(pod.Spec.Priority, 0) }

// startOf returns the time at which a pod started. A pod that has not started counts as later than
// all others.
func startOf(pod *corev1.Pod) int64 {
	if pod.Status.StartTime == nil {
		return math.MaxInt64
	}
	return pod.Status.StartTime.UnixNano()
}
