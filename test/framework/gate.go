// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gate is a pod readiness gate. Pods with this gate do not become ready before the test opens it.
const Gate corev1.PodConditionType = "tests.tidekeeper.dev/gate"

// OpenGate lets a workload's pods with a [Gate] become ready. It finds the pods by the label app,
// whose value must be the workload's name.
func (c *Cluster) OpenGate(t testing.TB, namespace, workload string) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app": workload}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		gated := slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == Gate })
		isOpen := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == Gate && c.Status == corev1.ConditionTrue })
		if !gated || isOpen || pod.DeletionTimestamp != nil {
			continue
		}
		patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, Gate)
		if err := client.IgnoreNotFound(c.Status().Patch(t.Context(), pod, client.RawPatch("application/strategic-merge-patch+json", patch))); err != nil {
			t.Fatal(err)
		}
	}
}
