// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestManager_Namespaces checks that a manager limited to one namespace handles only the opt-ins in
// this namespace, and logs no error about other namespaces.
func TestManager_Namespaces(t *testing.T) {
	const served = "served"
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: served}})
	elsewhere := optInWorkload("Deployment", "elsewhere", optInKey, "true")
	cluster.Apply(t, elsewhere)
	manager := cluster.StartManager(t, "--namespaces="+served)
	here := optInWorkload("Deployment", "here", optInKey, "true")
	here.SetNamespace(served)
	cluster.Apply(t, here)
	framework.Eventually(t, "the opt-in in the namespace is served", func() error {
		return cluster.Get(t.Context(), client.ObjectKey{Namespace: served, Name: "here"}, &tidekeeperv1.ScheduledRestart{})
	})
	if restart := restartNamed(t, "elsewhere"); restart != nil {
		t.Errorf("an opt-in in another namespace is served: %v", restart.Spec)
	}
	if _, first, found := strings.Cut(manager.Log(), "level=error"); found {
		line, _, _ := strings.Cut(first, "\n")
		t.Errorf("the manager logs an error: %s", line)
	}
}
