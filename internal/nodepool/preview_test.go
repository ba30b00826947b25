// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestLevel(t *testing.T) {
	cpu := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
	}
	pod := func(phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("1500m")}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: cpu("4")}}
	requested, percent := Level(node, []*corev1.Pod{pod(corev1.PodRunning), pod(corev1.PodSucceeded)})
	if got := requested.Cpu().String(); got != "1500m" {
		t.Errorf("requested %s, want 1500m", got)
	}
	if diff := cmp.Diff(map[corev1.ResourceName]int32{"cpu": 37}, percent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
