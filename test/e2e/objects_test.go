// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// deployment makes a Deployment of pods with that spec.
func deployment(name string, replicas int32, spec corev1.PodSpec) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// eventuallyReady waits until all pods of a Deployment are ready.
func eventuallyReady(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	framework.Eventually(t, "deployment "+d.Name+" is ready", func() error {
		cluster.Refresh(t, d)
		return diff(*d.Spec.Replicas, d.Status.ReadyReplicas)
	})
}
