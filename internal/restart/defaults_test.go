// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestDefaultIsWritten checks that the default schedule is written once into a spec without a
// trigger. It must not be written into other specs, while failures are counted, or while a restart
// is in progress.
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

// expectSchedule reconciles twice, and checks the schedule and the number of events about the
// default schedule.
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

// TestDefaultThatIsRefused checks that a default schedule that the API server rejects is in force
// nevertheless, and that its write is retried with increasing delays.
func TestDefaultThatIsRefused(t *testing.T) {
	b := newBench(t, func(r *tidekeeperv1.ScheduledRestart, _ *appsv1.Deployment) {
		r.Spec.Schedule, r.Status.Active = "", nil
	})
	b.patchTarget = errors.New("the API server is away")
	if err := b.reconcile(t, time.Second); err == nil {
		t.Error("it is not tried again")
	}
	read := func() *tidekeeperv1.ScheduledRestart {
		t.Helper()
		got := &tidekeeperv1.ScheduledRestart{}
		if err := b.client.Get(t.Context(), testKey, got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	b.patchTarget = errTooLarge
	after := time.Second
	for _, delay := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if err := b.reconcile(t, after); err != nil {
			t.Fatal(err)
		}
		if got := read(); got.Spec.Schedule != "" || got.Status.NextScheduleTime == nil {
			t.Errorf("it has no next tick: %+v", got)
		}
		if again := b.defaults.until(testKey); !again.Equal(b.now.Now().Add(delay)) {
			t.Errorf("after %s it is tried again at %s, want after another %s", after, again, delay)
		}
		after += delay
		b.now.SetTime(testStart.Add(after))
		if woken, _ := b.queue.Get(); woken.NamespacedName != testKey {
			t.Fatalf("woken: %v", woken)
		} else {
			b.queue.Done(woken)
		}
	}
	b.patchTarget = nil
	if err := b.reconcile(t, after-time.Millisecond); err != nil || read().Spec.Schedule != "" {
		t.Errorf("it was tried too early: %v", err)
	}
	if err := b.reconcile(t, after); err != nil || read().Spec.Schedule != tidekeeperv1.DefaultSchedule {
		t.Errorf("it was not tried again: %v", err)
	}
}
