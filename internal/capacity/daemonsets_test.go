// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// TestDaemonSetPods checks which DaemonSets run on a node, by its labels and taints.
func TestDaemonSetPods(t *testing.T) {
	n := aNode("new", "cpu", "2", "pods", "10")
	n.Labels["disk"] = "ssd"
	n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}}
	gpu := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		runs bool
	}{
		"tolerates":              {corev1.PodSpec{Tolerations: gpu}, true},
		"does not tolerate":      {corev1.PodSpec{}, false},
		"selects":                {corev1.PodSpec{Tolerations: gpu, NodeSelector: map[string]string{"disk": "ssd"}}, true},
		"selects something else": {corev1.PodSpec{Tolerations: gpu, NodeSelector: map[string]string{"disk": "hdd"}}, false},
	} {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "log", Name: "agent"}}
		set.Spec.Template.Spec = tt.spec
		got := DaemonSetPods(&n, []*appsv1.DaemonSet{set})
		if (len(got) == 1) != tt.runs {
			t.Errorf("%s: %d pods", name, len(got))
		}
		if len(got) == 1 && (got[0].Spec.NodeName != "new" || !pods.IsOfDaemonSet(got[0])) {
			t.Errorf("%s: %+v", name, got[0])
		}
		if len(set.Spec.Template.Spec.Tolerations) != len(tt.spec.Tolerations) {
			t.Errorf("%s: the DaemonSet has changed", name)
		}
		set.DeletionTimestamp = new(metav1.Now())
		if got := DaemonSetPods(&n, []*appsv1.DaemonSet{set}); len(got) > 0 {
			t.Errorf("%s: a DaemonSet that is being deleted runs", name)
		}
	}
}
