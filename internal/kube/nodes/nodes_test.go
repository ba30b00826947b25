// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIsReady(t *testing.T) {
	for _, tt := range []struct {
		conditions []corev1.NodeCondition
		want       bool
	}{
		{nil, false},
		{[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, true},
		{[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}, false},
		{[]corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}}, false},
	} {
		if got := IsReady(&corev1.Node{Status: corev1.NodeStatus{Conditions: tt.conditions}}); got != tt.want {
			t.Errorf("%v: got %t, want %t", tt.conditions, got, tt.want)
		}
	}
}

func TestBlocks(t *testing.T) {
	tolerations := []corev1.Toleration{
		{Key: "other", Operator: corev1.TolerationOpExists},
		{Key: "pool", Operator: corev1.TolerationOpEqual, Value: "a", Effect: corev1.TaintEffectNoSchedule},
	}
	for _, tt := range []struct {
		taint corev1.Taint
		first int
		want  bool
	}{
		{corev1.Taint{Key: "pool", Value: "a", Effect: corev1.TaintEffectNoSchedule}, 1, false},
		{corev1.Taint{Key: "pool", Value: "b", Effect: corev1.TaintEffectNoSchedule}, -1, true},
		{corev1.Taint{Key: "pool", Value: "a", Effect: corev1.TaintEffectNoExecute}, -1, true},
		{corev1.Taint{Key: "pool", Value: "b", Effect: corev1.TaintEffectPreferNoSchedule}, -1, false},
		{corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoExecute}, 0, false},
	} {
		if first := FirstTolerating(tolerations, &tt.taint); first != tt.first {
			t.Errorf("%s: the first toleration is %d, want %d", tt.taint.ToString(), first, tt.first)
		}
		if got := Blocks(&tt.taint, tolerations); got != tt.want {
			t.Errorf("%s blocks: %t, want %t", tt.taint.ToString(), got, tt.want)
		}
	}
}
