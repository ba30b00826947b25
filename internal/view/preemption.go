// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// AddPreemptions sets the preemption by which the scheduler would make room for a copy of a pod in
// the pools in `fits`, which [Room.Fit] has returned for this pod. If tolerant is set, a copy in a
// pool can only run on the nodes of this pool, as pods with the pool's RuntimeClass do. Otherwise,
// the scheduler chooses one node of the cluster; if it is in none of the pools, the preemption is
// returned as `elsewhere`.
func (r *Room) AddPreemptions(fits []PoolFit, pod *corev1.Pod, tolerant bool, budgets *capacity.Budgets) (elsewhere *capacity.Preemption) {
	pod = pod.DeepCopy()
	pod.Name = "" // A dry run has made up a name.
	if tolerant {
		for i, pool := range r.Pools {
			members := append([]string{}, pool.Members...) // not nil, which means all nodes
			fits[i].Preemption = capacity.Preempt(r.Cluster, tolerantOf(pool, pod), members, budgets)
		}
		return nil
	}
	chosen := capacity.Preempt(r.Cluster, pod, nil, budgets)
	if chosen == nil {
		return nil
	}
	elsewhere = chosen
	for i, pool := range r.Pools {
		if slices.Contains(pool.Members, chosen.Node) {
			fits[i].Preemption, elsewhere = chosen, nil
		}
	}
	return elsewhere
}

// MayPreempt reports whether the scheduler could evict running pods of a cluster for a pending pod.
func MayPreempt(cluster *capacity.Cluster, pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" && capacity.CanPreempt(pod) && capacity.HasLower(cluster, pod)
	})
}

// PendingPreempted is like [Room.Pending], and sets [PendingGroup.Preemption].
func (r *Room) PendingPreempted(budgets *capacity.Budgets) []PendingGroup {
	groups := []PendingGroup{}
	for _, g := range r.Cluster.Pending() {
		shown := r.pendingGroup(g)
		if first := firstOf(g.Pods); first != nil {
			shown.Preemption = capacity.Preempt(r.Cluster, first, nil, budgets)
		}
		groups = append(groups, shown)
	}
	return groups
}

// firstOf returns the pod that the scheduler would try first among the pods that may preempt
// others: the pod of the highest priority, then the oldest pod. It returns nil if there is none.
func firstOf(pods []*corev1.Pod) *corev1.Pod {
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !capacity.CanPreempt(pod) })
	if len(pods) == 0 {
		return nil
	}
	return slices.MinFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(capacity.PriorityOf(b), capacity.PriorityOf(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// mostVictims is the maximum number of victims named in a sentence.
const mostVictims = 5

// PreemptionText describes a preemption for a copy of a pod, or for the pod p.Pod of a namespace.
func PreemptionText(p *capacity.Preemption, namespace string) string {
	var text strings.Builder
	who := fmt.Sprintf("1 more (priority %d)", p.Priority)
	if p.Pod != "" {
		who = fmt.Sprintf("%s/%s (priority %d)", namespace, p.Pod, p.Priority)
	}
	if p.Underway {
		fmt.Fprintf(&text, "%s waits for %s, where the scheduler has evicted %s.", who, p.Node, victimsText(p.Victims))
	} else {
		fmt.Fprintf(&text, "By preemption %s would be placed on %s: it would evict %s.", who, p.Node, victimsText(p.Victims))
	}
	if p.CopiesAfter > 1 {
		fmt.Fprintf(&text, " After that, %d fit.", p.CopiesAfter)
	}
	switch others := len(p.EqualNodes); {
	case others > mostVictims:
		fmt.Fprintf(&text, " %d other nodes are equally good.", others)
	case others > 0:
		fmt.Fprintf(&text, " Equally good: %s.", strings.Join(p.EqualNodes, ", "))
	}
	if len(p.Uncertain) > 0 {
		fmt.Fprintf(&text, " The scheduler may decide otherwise because of: %s.", strings.Join(p.Uncertain, ", "))
	}
	return text.String()
}

// victimsText names the first victims, and counts the others.
func victimsText(victims []capacity.Victim) string {
	var texts []string
	for _, v := range victims[:min(len(victims), mostVictims)] {
		text := fmt.Sprintf("%s/%s (priority %d", v.Namespace, v.Name, v.Priority)
		if v.Workload == "Pod/"+v.Name {
			text += ", without a controller"
		} else {
			text += ", of " + v.Workload
		}
		if v.Budget != "" {
			text += ", against PodDisruptionBudget " + v.Budget
		}
		texts = append(texts, text+")")
	}
	if more := victims[len(texts):]; len(more) > 0 {
		against := 0
		for _, v := range more {
			if v.Budget != "" {
				against++
			}
		}
		text := "and " + plural(len(more), "more pod")
		if against > 0 {
			text += fmt.Sprintf(", %d against a PodDisruptionBudget", against)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
