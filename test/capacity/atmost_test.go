// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFitAtMost checks pods with constraints that the scheduler evaluates but pools fit does not.
// pools fit must name the constraint, and must not report fewer copies than the scheduler places.
func TestFitAtMost(t *testing.T) {
	var exact, fewer atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		inWorlds(t, "most", func(t *testing.T, w *world) {
			w.addNodes(t, 2+w.IntN(3))
			spec := w.shape()
			w.occupy(t)
			what := w.interact(t, &spec)
			says := w.fitOf(t, spec)
			if !slices.Contains(says.AtMost, what) {
				t.Fatalf("pools fit does not say that %s is not evaluated: %s", what, says.AtMost)
			}
			got, _ := w.copies(t, spec, says.Copies)
			if more, _ := w.copies(t, spec, 1); more > says.Copies {
				t.Fatalf("the scheduler places more than %d copies\n%s", says.Copies, w.describe(spec))
			}
			if got == says.Copies {
				exact.Add(1)
			} else {
				fewer.Add(1)
			}
		})
	})
	t.Logf("as many copies as pools fit says: %d worlds; fewer: %d", exact.Load(), fewer.Load())
}

// interact makes a pod depend on other pods, volumes or ports, and returns the constraint's name in
// the output of pools fit.
func (w *world) interact(t *testing.T, s *corev1.PodSpec) (what string) {
	t.Helper()
	copies := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "copy"}}
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	term := corev1.PodAffinityTerm{LabelSelector: copies, TopologyKey: oneOf(w, corev1.LabelHostname, corev1.LabelTopologyZone)}
	switch w.IntN(7) {
	case 0:
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
		return "host ports"
	case 1:
		s.HostNetwork, s.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 80}}
		return "host ports"
	case 2:
		s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		return "anti-affinity to other pods"
	case 3:
		term.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "running"}}
		s.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		return "affinity to other pods"
	case 4:
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: copies,
		}}
		return "topology spread constraints"
	case 5:
		s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}}}}
		return "persistent volumes"
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
		return "anti-affinity of other pods"
	}
}
