// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkSurvey measures a survey of 150,000 pods on 5,000 nodes, in two clusters. The first has
// a PodDisruptionBudget for each of 5,000 workloads in 100 namespaces. In the second, a tenant also
// has 5,000 pods with different labels, and 10,000 budgets, each of which must be compared with
// every pod although it selects none of them.
func BenchmarkSurvey(b *testing.B) {
	const nodes, perNode, workloads = 5_000, 30, 5_000
	var kinds []CachedPod
	var budgets, hostile []policyv1.PodDisruptionBudget
	for w := range workloads {
		app := fmt.Sprint("service-", w)
		namespace := fmt.Sprint("team-", w%100)
		pod := aPod("p", labeled(map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app, "team": namespace, "version": "1"}))
		pod.Namespace, pod.OwnerReferences[0].Name = namespace, app
		kinds = append(kinds, cached(pod))
		budget := aBudget(app, 3, int32(w%10), selects(metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": app, "team": namespace}}))
		budget.Namespace = namespace
		budgets = append(budgets, *budget)
	}
	for i := range 10_000 {
		budget := aBudget(fmt.Sprint("b", i), 3, 1, selects(requires("id", metav1.LabelSelectorOpDoesNotExist)))
		budget.Namespace = "hostile"
		hostile = append(hostile, *budget)
	}
	var strange []CachedPod
	for i := range 5_000 {
		pod := aPod(fmt.Sprint("h", i), labeled(map[string]string{"id": fmt.Sprint(i)}))
		pod.Namespace = "hostile"
		strange = append(strange, cached(pod))
	}
	for name, with := range map[string]struct {
		budgets []*CachedBudget
		strange []CachedPod
	}{
		"usual":   {cachedBudgets(b, budgets...), nil},
		"hostile": {cachedBudgets(b, append(budgets, hostile...)...), strange},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, tally := NewSurvey(hasher, with.budgets, History{}, noon), NewTally()
				running := make([]CachedPod, perNode)
				for node := range nodes {
					for i := range running {
						running[i] = kinds[(node*perNode+i)%workloads]
					}
					if node < len(with.strange) {
						running[0] = with.strange[node]
					}
					s.AddNode(fmt.Sprint("node-", node), running, 0, []*Tally{tally})
				}
			}
		})
	}
}
