// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestPoolsWithinBudgets checks that a plan says which pods a taint with the eviction WithinBudgets
// evicts, and which PodDisruptionBudget would make it wait; and that describe shows the node that is
// being emptied, the pod that stays and why.
func TestPoolsWithinBudgets(t *testing.T) {
	cluster.StartManager(t, "--no-execute-interval=1s")
	cluster.AddNodes(t, "polite", 1, "--labels", "node-role.kubernetes.io/polite=")
	aNamespace(t, "polite")
	spec := *framework.App.DeepCopy()
	spec.NodeSelector = map[string]string{corev1.LabelHostname: "polite-1"}
	d := framework.Deployment("web", 2, spec)
	d.Namespace = "polite"
	cluster.Apply(t, d)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "polite", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	cluster.Apply(t, budget)
	framework.Eventually(t, "the budget is in force", func() error {
		cluster.Refresh(t, budget)
		return diff(int32(2), budget.Status.CurrentHealthy)
	})
	const polite = `
apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: polite}
spec:
  taints: [{key: example.com/polite, effect: NoExecute, eviction: WithinBudgets}]
`
	// The plan reads pods and budgets from the API server's cache.
	framework.Eventually(t, "the plan says how the pods are evicted", func() error {
		shown := plan(t, polite, "-f", "-")
		for _, want := range []string{
			"Pods:          2 would be evicted from 1 node within their budgets, a few nodes at a time\n",
			"Would wait:    polite/Deployment/web (2 pods): the PodDisruptionBudget web never allows a disruption: 2 of 2 pods must be healthy\n",
			"  + taint example.com/polite:NoExecute\n",
		} {
			if !strings.Contains(shown, want) {
				return fmt.Errorf("it has no %q:\n%s", want, shown)
			}
		}
		if !regexp.MustCompile(`\npolite +Deployment/web +2 +1 +evicted within budgets +taint example.com/polite:NoExecute\n`).MatchString(shown) || strings.Contains(shown, "NoSchedule") {
			return errors.New(shown)
		}
		return nil
	})
	cluster.MustKubectl(t, polite, "apply", "-f", "-")
	deletedAtTheEnd(t, framework.Pool("polite"))
	status := regexp.MustCompile(`\nStatus: +EvictionBlocked, 1 of 1 node does not match .*; node polite-1 cannot be emptied within budgets: 2 pods are left, for instance polite/web-\S+: The disruption budget web needs 2 healthy pods`)
	row := regexp.MustCompile(`\npolite-1 .* taint example.com/polite:NoExecute, being emptied for \d+s\n`)
	framework.Eventually(t, "describe says why the node is not emptied", func() error {
		out := tide(t, "pools", "describe", "polite")
		if !status.MatchString(out) || !row.MatchString(out) {
			return errors.New(out)
		}
		return nil
	})
}
