// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

func TestReadyIs(t *testing.T) {
	t.Parallel()
	condition := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, ObservedGeneration: 2}}
	}
	for name, tt := range map[string]struct {
		conditions []metav1.Condition
		reason     string
		generation int64
		want       string
	}{
		"true":               {condition("True", "Healthy"), "Healthy", 2, ""},
		"false":              {condition("False", "Conflicted"), "Conflicted", 2, ""},
		"another status":     {condition("False", "Healthy"), "Healthy", 2, "Ready is False, Healthy for generation 2, want True, Healthy for generation 2"},
		"another reason":     {condition("True", "NoNodes"), "Healthy", 2, "Ready is True, NoNodes"},
		"another generation": {condition("True", "Healthy"), "Healthy", 3, "want True, Healthy for generation 3"},
		"no such reason":     {condition("True", "Well"), "Well", 2, "Well is not a reason"},
		"none":               {nil, "Healthy", 2, "no condition Ready yet"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := ReadyIs(tt.conditions, tt.generation, tt.reason); err != nil {
				got = err.Error()
			}
			if got == "" != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, reason := range decision.ReadyReasons {
		if _, known := statusOf[reason]; !known {
			t.Errorf("the reason %s has no status", reason)
		}
	}
}
