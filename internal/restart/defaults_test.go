// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// The default schedule is written into a spec that names no trigger, once, and never into another
// one or when that would forget failures or disturb a restart.
func TestDefaultIsWritten(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*tidekeeperv1.ScheduledRestart)
		want   tidekeeperv1.CronExpression
	}{
		{"no trigger", func(*tidekeeperv1.ScheduledRestart) {}, "0 0 * * *"},
		{"suspended", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true }, "0 0 * * *"},
		{"a schedule", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Schedule = "0 4 * * *" }, "0 4 * * *"},
		{"the age of pods", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.MaxPodAgeSeconds, r.Spec.Suspend = 300, true }, ""},
		{"changes", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.OnConfigChange = tidekeeperv1.ConfigMapsOnly }, ""},
		{"stopped by failures", func(r *tidekeeperv1.ScheduledRestart) { r.Status.ConsecutiveFailures = 3 }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, func(r *tidekeeperv1.ScheduledRestart, _ *appsv1.Deployment) {
				r.Spec.Schedule, r.Status.Active = "", nil
				tt.change(r)
			})
			expectSchedule(t, b, tt.want)
		})
	}
	t.Run("a restart in progress", func(t *testing.T) {
		expectSchedule(t, newBench(t, func(r *tidekeeperv1.ScheduledRestart, _ *appsv1.Deployment) { r.Spec.Schedule = "" }), "")
	})
}

// expectSchedule reconciles twice, and compares the schedule and the events about it.
func expectSchedule(t *testing.T, b *bench, want tidekeeperv1.CronExpression) {
	t.Helper()
	for range 2 {
		if err := b.reconcile(t, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	said := 0
	for len(b.events.Events) > 0 {
		if strings.Contains(<-b.events.Events, tidekeeperv1.EventScheduleDefaulted) {
			said++
		}
	}
	got := &tidekeeperv1.ScheduledRestart{}
	if err := b.client.Get(t.Context(), testKey, got); err != nil {
		t.Fatal(err)
	}
	if written := want == tidekeeperv1.DefaultSchedule; got.Spec.Schedule != want || written != (said == 1) || said > 1 {
		t.Errorf("the schedule is %q, want %q; %d events", got.Spec.Schedule, want, said)
	}
}

// What cannot be written for its content is in force all the same, and is not tried at each look.
func TestDefaultThatIsRefused(t *testing.T) {
	b := newBench(t, func(r *tidekeeperv1.ScheduledRestart, _ *appsv1.Deployment) {
		r.Spec.Schedule, r.Status.Active = "", nil
	})
	b.patchTarget = errors.New("the API server is away")
	if err := b.reconcile(t, time.Second); err == nil {
		t.Error("it is not tried again")
	}
	b.patchTarget = errTooLarge
	if err := b.reconcile(t, time.Second); err != nil {
		t.Fatal(err)
	}
	got := &tidekeeperv1.ScheduledRestart{}
	if err := b.client.Get(t.Context(), testKey, got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Schedule != "" || got.Status.NextScheduleTime == nil {
		t.Errorf("it has no next tick: %+v", got)
	}
	b.patchTarget = apierrors.NewInternalError(errors.New("asked again"))
	if err := b.reconcile(t, time.Second); err != nil {
		t.Error(err)
	}
}
