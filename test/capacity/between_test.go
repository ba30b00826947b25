// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFitBetweenPods checks pods with constraints between pods. The scheduler must place exactly as
// many copies as pools fit reports.
func TestFitBetweenPods(t *testing.T) {
	inWorlds(t, "most", func(t *testing.T, w *world) {
		w.addNodes(t, 2+w.IntN(3))
		spec := w.shape()
		w.occupy(t)
		w.interact(t, &spec)
		says := w.fitOf(t, spec)
		if len(says.AtMost) > 0 {
			t.Fatalf("pools fit says that %q is not evaluated\n%s", says.AtMost, w.describe(spec))
		}
		w.assertFits(t, spec, says.Copies)
	})
}

// interact makes a pod depend on other pods, volumes or ports.
func (w *world) interact(t *testing.T, s *corev1.PodSpec) {
	t.Helper()
	copies := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "copy"}}
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	term := corev1.PodAffinityTerm{LabelSelector: copies, TopologyKey: oneOf(w, corev1.LabelHostname, corev1.LabelTopologyZone)}
	switch w.IntN(7) {
	case 0:
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	case 1:
		s.HostNetwork, s.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 80}}
	case 2:
		s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 3:
		term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "running"}}
		s.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 4:
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: copies,
		}}
	case 5:
		s.Volumes = []corev1.Volume{volumeOf("none")}
	default:
		lonely := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "lonely", Namespace: w.name},
			Spec: corev1.PodSpec{
				NodeName: oneOf(w, w.nodes...).Name, Containers: []corev1.Container{container("app", nil)}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}},
			},
		}
		if err := cluster.Create(t.Context(), lonely); err != nil {
			t.Fatal(err)
		}
		w.pods++
		w.awaitPods(t)
	}
}
