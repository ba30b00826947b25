// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestConfigIsKept checks that the same ConfigMaps and Secrets are found before and after the cache
// has trimmed a workload.
func TestConfigIsKept(t *testing.T) {
	template := corev1.PodTemplateSpec{}
	template.Name = "s/not-what-is-used"
	template.Spec.Containers = []corev1.Container{{
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}},
	}}
	rollout := func(template map[string]any) *unstructured.Unstructured {
		u := newRollout().(*unstructured.Unstructured)
		u.Object["spec"] = map[string]any{"replicas": int64(1), "template": template}
		return u
	}
	for name, tt := range map[string]struct {
		kind   *Kind
		object Object
		want   string
	}{
		"Deployment":  {Deployment, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template}}, "C/web"},
		"StatefulSet": {StatefulSet, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: template}}, "C/web"},
		"DaemonSet":   {DaemonSet, &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: template}}, "C/web"},
		"Rollout": {Rollout, rollout(map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "web"}}}},
		}}}), "C/web"},
		"Rollout of another shape":   {Rollout, rollout(map[string]any{"spec": map[string]any{"containers": "none"}}), ""},
		"Rollout without a template": {Rollout, rollout(nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			// The cache may trim an object more than once.
			for _, when := range []string{"as it is", "trimmed", "trimmed twice"} {
				state, err := tt.kind.State(tt.object)
				if err != nil || state.Config != tt.want {
					t.Errorf("%s: %q, %v; want %q", when, state.Config, err, tt.want)
				}
				if err := tt.kind.Trim(tt.object); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
