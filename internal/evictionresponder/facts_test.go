// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/rescue"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestRestartOf checks which restart moves a pod that was created at noon, and whose responder was
// activated ten minutes later.
func TestRestartOf(t *testing.T) {
	noon := time.Date(2026, time.June, 9, 12, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
	// restart was requested at a minute. It was recorded with an outcome, or has not begun.
	restart := func(at int, outcome tidekeeperv1.Outcome) *tidekeeperv1.ScheduledRestart {
		r := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(minute(at)), Annotations: map[string]string{tidekeeperv1.RestartNowAnnotation: workload.FormatTime(minute(at))},
		}}
		r.Status.ObservedGeneration = 1
		if outcome != "" {
			r.Status.LastRequestTime = new(metav1.NewTime(minute(at)))
			r.Status.History = []tidekeeperv1.RestartRecord{{ScheduledTime: metav1.NewTime(minute(at)), Outcome: outcome}}
		}
		return r
	}
	unobserved := restart(10, "")
	unobserved.Status.ObservedGeneration = 0
	for name, tc := range map[string]struct {
		known *tidekeeperv1.ScheduledRestart
		want  rescue.RestartState
	}{
		"none":                        {nil, ""},
		"requested for this pod":      {restart(10, ""), rescue.Waiting},
		"succeeded":                   {restart(10, tidekeeperv1.OutcomeSucceeded), rescue.Succeeded},
		"failed":                      {restart(10, tidekeeperv1.OutcomeFailed), rescue.Failed},
		"not observed yet":            {unobserved, rescue.Waiting},
		"requested for another pod":   {restart(5, ""), rescue.Waiting},
		"requested before this pod":   {restart(-5, ""), ""},
		"failed before the eviction":  {restart(5, tidekeeperv1.OutcomeFailed), ""},
		"succeeded before this began": {restart(5, tidekeeperv1.OutcomeSucceeded), ""},
	} {
		state := rescue.RestartState("")
		if got := restartOf(tc.known, pod, minute(10), minute(13)); got != nil {
			state = got.State
		}
		if state != tc.want {
			t.Errorf("%s: %q, want %q", name, state, tc.want)
		}
	}
}
