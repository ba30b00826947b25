// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// drawSelector returns a random label selector over few labels and values.
func drawSelector(t *rapid.T) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: rapid.MapOfN(rapid.SampledFrom([]string{"app", "tier"}), rapid.SampledFrom([]string{"", "a", "b"}), 0, 2).Draw(t, "labels")}
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		r := metav1.LabelSelectorRequirement{
			Key:      rapid.SampledFrom([]string{"app", "tier"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}).Draw(t, "operator"),
		}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "b"}), 1, 2, rapid.ID).Draw(t, "values")
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

// drawTerm returns a random affinity term over hosts or zones.
func drawTerm(t *rapid.T) corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{LabelSelector: drawSelector(t), TopologyKey: rapid.SampledFrom([]string{corev1.LabelHostname, corev1.LabelTopologyZone}).Draw(t, "topology")}
	switch rapid.IntRange(0, 2).Draw(t, "namespaces") {
	case 1:
		term.Namespaces = []string{"shop", "other"}
	case 2:
		term.NamespaceSelector = &metav1.LabelSelector{} // all namespaces
	}
	return term
}

// drawRelated returns a random cluster of pods that have constraints on each other.
func drawRelated(t *rapid.T) (list []corev1.Node, pods []corev1.Pod) {
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		n := aNode(fmt.Sprint("n", i), "cpu", "4", "pods", "110")
		if zone := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"); zone != "" {
			n.Labels[corev1.LabelTopologyZone] = zone
		}
		list = append(list, n)
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "pods") {
		p := aPod(fmt.Sprint("p", i), "ReplicaSet", fmt.Sprint("w", i), rapid.SampledFrom(list).Draw(t, "node").Name, "cpu", "1")
		p.Namespace = rapid.SampledFrom([]string{"shop", "other"}).Draw(t, "namespace")
		p.Labels = rapid.MapOfN(rapid.SampledFrom([]string{"app", "tier"}), rapid.SampledFrom([]string{"", "a", "b"}), 0, 2).Draw(t, "labels")
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
		for range rapid.IntRange(0, 1).Draw(t, "affinity") {
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, drawTerm(t))
		}
		for range rapid.IntRange(0, 2).Draw(t, "anti-affinity") {
			p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, drawTerm(t))
		}
		for range rapid.IntRange(0, 1).Draw(t, "spread") {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: drawSelector(t),
			})
		}
		pods = append(pods, p)
	}
	return list, pods
}

// counts returns the pods in each domain of a counter.
func (c *counter) counts() map[string]int {
	counts := map[string]int{}
	for domain, value := range c.topology.values {
		if n := c.pods.at(int32(domain)); n != 0 {
			counts[value] = n
		}
	}
	return counts
}

// TestCountersCountAllSelectedPods checks that counters count the pods which a comparison with all
// pods of the cluster finds, that each pod knows these counters, and that a simulated loss leaves the
// counters as they were.
func TestCountersCountAllSelectedPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, pods := drawRelated(t)
		c := newCluster(list, pods)
		for i := range list {
			c.Lose([]string{list[i].Name}, nil) // It creates the counters of the node's pods.
		}
		c.Lose([]string{list[0].Name}, nil)
		for name, got := range c.classes.relations.counters {
			want := map[string]int{}
			for _, n := range c.nodes {
				for _, p := range n.pods {
					knows := 0
					for _, other := range c.classes.relations.selectingOf(p) {
						if other == got {
							knows++
						}
					}
					if selected := got.selects(p); selected != (knows == 1) {
						t.Fatalf("counter %q selects %s: %t, which the pod knows %d times", name, p.object.Name, selected, knows)
					}
					if value, has := n.object.Labels[got.key]; has && got.selects(p) && (got.on == nil || got.on[n.number]) {
						want[value]++
					}
				}
			}
			if counts := got.counts(); !maps.Equal(counts, want) {
				t.Fatalf("counter %q counts %v, want %v", name, counts, want)
			}
		}
	})
}
