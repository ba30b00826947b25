// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// makeRollout returns a healthy Rollout with three pods, modified by the given spec and status
// fields.
func makeRollout(spec, status map[string]any) Object {
	r := map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{
			"name": "web", "uid": "1", "generation": int64(2),
			"annotations": map[string]any{tidekeeperv1.LastTickAnnotation: "2026-06-10T03:00:00Z"},
		},
		"spec": map[string]any{"replicas": int64(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
		"status": map[string]any{
			"observedGeneration": "2", "updatedReplicas": int64(3), "availableReplicas": int64(3), "phase": "Healthy",
		},
	}
	for part, changes := range map[string]map[string]any{"spec": spec, "status": status} {
		for field, value := range changes {
			if value == nil {
				delete(r[part].(map[string]any), field)
			} else {
				r[part].(map[string]any)[field] = value
			}
		}
	}
	return &unstructured.Unstructured{Object: r}
}

func TestRolloutProgress(t *testing.T) {
	type fields = map[string]any
	const tick = "2026-06-10T03:00:00Z"
	for _, tt := range []struct {
		name         string
		spec, status fields
		want         Progress
	}{
		{name: "complete", want: Progress{Available: true}},
		{name: "never observed", status: fields{"observedGeneration": nil}, want: notObserved()},
		{name: "not observed", status: fields{"observedGeneration": "1"}, want: notObserved()},
		{name: "observed by an early version", status: fields{"observedGeneration": "7d4b9"}, want: Progress{Available: true}},
		{name: "some updated", status: fields{"updatedReplicas": int64(1)}, want: Progress{Updating: true, Message: "1 of 3 pods are updated"}},
		{name: "not available", status: fields{"availableReplicas": int64(2)}, want: Progress{Message: "2 of 3 pods are available"}},
		{name: "one replica by default", spec: fields{"replicas": nil}, status: fields{"updatedReplicas": int64(1), "availableReplicas": int64(1)}, want: Progress{Available: true}},
		{name: "restarting", spec: fields{"restartAt": tick}, want: Progress{Updating: true, Message: "not all pods are restarted"}},
		{
			name: "restarting again", spec: fields{"restartAt": tick}, status: fields{"restartedAt": "2026-06-09T03:00:00Z"},
			want: Progress{Updating: true, Message: "not all pods are restarted"},
		},
		{name: "restarted", spec: fields{"restartAt": "2026-06-10T05:00:00+02:00"}, status: fields{"restartedAt": tick}, want: Progress{Available: true}},
		{name: "in a pause of its steps", status: fields{"phase": "Paused", "message": "CanaryPauseStep"}, want: Progress{
			Updating: true, Halted: "its update is paused: CanaryPauseStep", Message: "its phase is Paused: CanaryPauseStep",
		}},
		{name: "progressing", status: fields{"phase": "Progressing"}, want: Progress{Updating: true, Message: "its phase is Progressing"}},
		{
			name: "degraded", status: fields{"phase": "Degraded", "availableReplicas": int64(2), "message": "ProgressDeadlineExceeded"},
			want: Progress{Exceeded: true, Message: "2 of 3 pods are available: ProgressDeadlineExceeded"},
		},
		{
			name: "aborted", status: fields{"phase": "Degraded", "abort": true, "updatedReplicas": int64(0), "message": "RolloutAborted: aborted"},
			want: Progress{Available: true, Halted: "its update was aborted"},
		},
		{
			name: "aborted, and restarting", spec: fields{"restartAt": tick}, status: fields{"phase": "Degraded", "abort": true, "updatedReplicas": int64(0)},
			want: Progress{Updating: true, Halted: "its update was aborted", Message: "not all pods are restarted"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, read(t, makeRollout(tt.spec, tt.status)).Rollout); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRolloutState checks that the same state is derived from a Rollout before and after the cache
// has trimmed it.
func TestRolloutState(t *testing.T) {
	r := makeRollout(
		map[string]any{"paused": true, "restartAt": "2026-06-10T03:00:00Z", "strategy": map[string]any{"canary": map[string]any{}}},
		map[string]any{"restartedAt": "2026-06-10T03:00:00Z", "abort": true, "conditions": []any{}},
	)
	want := &State{
		Kind: "Rollout", Name: "web", UID: "1", Paused: true, Pods: 3, Updates: 3,
		RestartedAt: "2026-06-10T03:00:00Z", LastTick: "2026-06-10T03:00:00Z",
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Rollout: Progress{Available: true, Halted: "its update was aborted"},
	}
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if err := Rollout.Trim(r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Errorf("state after trimming (-want +got):\n%s", diff)
	}
	if spec := r.(*unstructured.Unstructured).Object["spec"].(map[string]any); spec["strategy"] != nil {
		t.Errorf("what no controller reads is kept: %v", spec)
	}
}

// TestRolloutOfAnotherShape checks that a Rollout with fields of unexpected types, or without any
// fields, does not cause a panic.
func TestRolloutOfAnotherShape(t *testing.T) {
	if s, err := Rollout.State(makeRollout(map[string]any{"replicas": "three"}, nil)); err == nil {
		t.Errorf("got %+v, want an error", s)
	}
	empty := newRollout()
	if err := Rollout.Trim(empty); err != nil {
		t.Fatal(err)
	}
	if s := read(t, empty); s.Pods != 1 || s.Rollout.Complete() {
		t.Errorf("got %+v", s)
	}
}
