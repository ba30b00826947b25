// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Preemption describes the eviction of pods by which the scheduler makes room for a pod of higher
// priority that fits on no node.
type Preemption struct {
	// Pod is the name of the pod that needs room. It is empty for a pod that does not exist yet.
	Pod string `json:"pod,omitempty"`
	// Priority is the priority of this pod.
	Priority int32 `json:"priority"`
	// Node is the node on which the scheduler would place the pod.
	Node string `json:"node"`
	// EqualNodes lists other nodes that the scheduler ranks equal to Node. It chooses one of them
	// arbitrarily.
	EqualNodes []string `json:"equalNodes,omitempty"`
	// Victims lists the pods on Node that the scheduler would evict, the most important pod first.
	Victims []Victim `json:"victims"`
	// BudgetViolations is the number of victims whose eviction violates a PodDisruptionBudget. It
	// is nil if the PodDisruptionBudgets are not known, or the victims have already been evicted.
	BudgetViolations *int `json:"budgetViolations,omitempty"`
	// CopiesAfter is the number of copies of the pod that fit once the victims are gone.
	CopiesAfter int64 `json:"copiesAfter"`
	// Underway is true if the scheduler has already evicted the victims, and they are terminating.
	Underway bool `json:"underway,omitempty"`
	// Uncertain lists the reasons why the scheduler may choose other victims or nodes.
	Uncertain []string `json:"uncertain,omitempty"`
}

// Victim is a pod that the scheduler would evict.
type Victim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Workload  string `json:"workload"` // such as Deployment/web, or Pod/NAME without a controller
	Priority  int32  `json:"priority"`
	// Budget is the PodDisruptionBudget that the eviction would violate; empty if there is none.
	Budget string `json:"budget,omitempty"`
	// Terminating is true if the pod is already being deleted.
	Terminating bool `json:"terminating,omitempty"`
}

// Reasons for [Preemption.Uncertain], in addition to constraints that are not evaluated.
const (
	unknownBudgets = "PodDisruptionBudgets, which are not known"
	equalPods      = "pods of equal priority and age"
	podGroups      = "pod groups"
)

// minCandidates and candidatePercent are the scheduler's default settings for the number of
// candidate nodes among which it chooses. It starts at a random node and ignores later candidates.
const (
	minCandidates    = 100
	candidatePercent = 10
)

// CanPreempt reports whether the scheduler evicts other pods for this pod, and in the way that
// [Preempt] evaluates. Pods with scheduling gates are not scheduled, and the pods of a pod
// group preempt together.
func CanPreempt(pod *corev1.Pod) bool {
	return ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority) != corev1.PreemptNever &&
		len(pod.Spec.SchedulingGates) == 0 && pod.Spec.SchedulingGroup == nil
}

// HasLower reports whether a running pod of the cluster has a lower priority than the given pod.
func HasLower(c *Cluster, than *corev1.Pod) bool {
	return slices.ContainsFunc(c.nodes, func(n *node) bool {
		return slices.ContainsFunc(n.pods, func(p pod) bool { return PriorityOf(p.object) < PriorityOf(than) })
	})
}

// Preempt returns the preemption by which the scheduler would make room for a pod, by the rules of
// its plugin DefaultPreemption. It returns nil if the pod fits on a node without preemption, or if
// preemption does not help. Only the nodes named in `among` are evaluated, or all nodes if it is
// nil. The budgets are nil if they are not known.
func Preempt(c *Cluster, of *corev1.Pod, among []string, budgets *Budgets) *Preemption {
	if !CanPreempt(of) || !HasLower(c, of) {
		return nil
	}
	p := newPreemptor(c, of, among, budgets)
	if slices.ContainsFunc(p.members.nodes, p.admitsAlone) {
		return nil
	}
	if waits := p.underway(c.byName[of.Status.NominatedNodeName]); waits != nil {
		return waits
	}
	var candidates []*candidate
	possible := 0
	for _, n := range p.members.nodes {
		if p.refuses(n) {
			continue
		}
		possible++
		if found := p.candidate(n); found != nil {
			candidates = append(candidates, found)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	slices.SortStableFunc(candidates, (*candidate).compare)
	best := candidates[0]
	result := p.result(best.node, best.victims)
	result.BudgetViolations = best.violations(budgets)
	for _, other := range candidates[1:] {
		if best.compare(other) == 0 {
			result.EqualNodes = append(result.EqualNodes, other.node.object.Name)
		}
	}
	if most := max(minCandidates, possible*candidatePercent/100); len(candidates) > most {
		result.Uncertain = append(result.Uncertain, fmt.Sprintf("more than %d candidate nodes", most))
	}
	if best.ambiguous {
		result.Uncertain = append(result.Uncertain, equalPods)
	}
	if budgets == nil {
		result.Uncertain = append(result.Uncertain, unknownBudgets)
	}
	return result
}

// underway returns the preemption that the scheduler has begun for the pod on the node for which
// the pod is nominated. It returns nil if the node is nil or none of its pods is terminating for
// this reason.
func (p *preemptor) underway(nominated *node) *Preemption {
	if nominated == nil || p.refuses(nominated) {
		return nil
	}
	var evicted []victim
	for _, other := range nominated.pods {
		c := pods.Condition(other.object, corev1.DisruptionTarget)
		if PriorityOf(other.object) < PriorityOf(p.pod) && !other.object.DeletionTimestamp.IsZero() &&
			c != nil && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler {
			evicted = append(evicted, victim{pod: other})
		}
	}
	if len(evicted) == 0 {
		return nil
	}
	slices.SortStableFunc(evicted, func(a, b victim) int { return compareImportance(a.pod, b.pod) })
	result := p.result(nominated, evicted)
	result.Underway, result.Uncertain = true, nil
	return result
}

// result describes the eviction of pods from a node.
func (p *preemptor) result(n *node, victims []victim) *Preemption {
	found := &Preemption{Pod: p.pod.Name, Priority: PriorityOf(p.pod), Node: n.object.Name}
	removed := make([]pod, len(victims))
	for i, v := range victims {
		removed[i] = v.pod
		found.Victims = append(found.Victims, Victim{
			Namespace: v.object.Namespace, Name: v.object.Name, Workload: pods.WorkloadName(v.object), Priority: PriorityOf(v.object),
			Budget: v.budget, Terminating: !v.object.DeletionTimestamp.IsZero(),
		})
	}
	p.without(removed, n, func() []pod {
		p.volumes.forget(n)
		fit := p.members.Fit(p.pod)
		found.CopiesAfter, found.Uncertain = fit.Copies, slices.Clone(fit.AtMost)
		return removed
	})
	p.volumes.forget(n)
	if slices.ContainsFunc(n.pods, func(other pod) bool { return other.object.Spec.SchedulingGroup != nil }) {
		found.Uncertain = appendNew(found.Uncertain, []string{podGroups})
	}
	return found
}
