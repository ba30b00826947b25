// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestScaledState(t *testing.T) {
	ref := tidekeeperv1.TargetRef{APIVersion: "example.com/v1", Kind: "Squad", Name: "web"}
	scale := func(desired, pods int32, selector string) *autoscalingv1.Scale {
		return &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: autoscalingv1.ScaleSpec{Replicas: desired},
			Status: autoscalingv1.ScaleStatus{Replicas: pods, Selector: selector},
		}
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{}}
	state := State{Kind: "Squad", Name: "web", UID: "u", Scaled: true, Selector: app, Pods: 3, Updates: 3, Rollout: Progress{Available: true}}
	few := state
	few.Rollout = Progress{Message: "it has 2 of 3 pods"}
	for _, tt := range []struct {
		name  string
		scale *autoscalingv1.Scale
		want  *State
		err   string
	}{
		{"all pods", scale(3, 3, "app=web"), &state, ""},
		{"one is missing", scale(3, 2, "app=web"), &few, ""},
		{"no selector", scale(3, 3, ""), nil, "does not select pods"},
		{"a selector of everything", scale(3, 3, " "), nil, "does not select pods"},
		{"no such selector", scale(3, 3, "app in"), nil, "the invalid selector"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ScaledState(ref, tt.scale)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("the error is %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}
