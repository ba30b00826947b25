// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPodsOfOneControllerDiffer checks that pods of the same controller are placed according to
// their own constraints, which can differ during a rollout.
func TestPodsOfOneControllerDiffer(t *testing.T) {
	nodes := []corev1.Node{aNode("a", "cpu", "4", "pods", "10"), aNode("b", "cpu", "4", "pods", "10")}
	before, after := aPod("before", "StatefulSet", "db", "a", "cpu", "1"), aPod("after", "StatefulSet", "db", "a", "cpu", "1")
	for name, change := range map[string]func(*corev1.PodSpec){
		"node selector": func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "ssd"} },
		"node affinity": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}},
			}}}
		},
	} {
		changed := after.DeepCopy()
		change(&changed.Spec)
		l := newCluster(nodes, []corev1.Pod{before, *changed}).Lose([]string{"a"}, nil)
		if l.Pods != 2 || l.Homeless() != 1 {
			t.Errorf("%s: %d of %d pods without place, want 1 of 2", name, l.Homeless(), l.Pods)
		}
	}
	nodes[1].Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
	after.Spec.Tolerations = []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}}
	if l := newCluster(nodes, []corev1.Pod{after, before}).Lose([]string{"a"}, nil); l.Homeless() != 1 {
		t.Errorf("tolerations: %d pods without place, want 1", l.Homeless())
	}
}

func TestUnevaluated(t *testing.T) {
	for what, change := range map[string]func(*corev1.PodSpec){
		"": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}}
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
			s.HostNetwork = true
		},
		"persistent volumes": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}}}
		},
		"pod groups":       func(s *corev1.PodSpec) { s.SchedulingGroup = &corev1.PodSchedulingGroup{} },
		"scheduling gates": func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} },
		"resource claims":  func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}} },
	} {
		pod := aPod("new", "", "", "")
		change(&pod.Spec)
		var want []string
		if what != "" {
			want = []string{what}
		}
		equal(t, "not evaluated", want, ShapeOf(&pod).Unevaluated)
	}
}
