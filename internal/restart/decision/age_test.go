// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// limited replaces the schedule with the given maximum age of pods.
func limited(limit time.Duration) func(*Input) {
	return func(in *Input) {
		in.Restart.Spec.Schedule, in.Restart.Spec.MaxPodAgeSeconds = "", int32(limit/time.Second)
		in.Restart.Status.NextScheduleTime = nil
		var err error
		if in.Ticks, in.Windows, err = ParseSchedule(&in.Restart.Spec); err != nil {
			panic(err)
		}
	}
}

// oldest sets the creation time of the oldest pod, and marks the pods as read from the API server.
func oldest(created time.Time) func(*Input) {
	return func(in *Input) { in.PodAges = &PodAges{Oldest: created, Live: true} }
}

func TestAge(t *testing.T) {
	yesterday := at("03:00:01").AddDate(0, 0, -1)
	check(t, []row{
		{
			name: "young pods", in: makeInputs(limited(24*time.Hour), oldest(yesterday.Add(time.Hour))),
			ready: "True/Scheduled", wake: at("04:00:01"),
		},
		{
			name: "no pod should exist", in: makeInputs(limited(24*time.Hour), withTarget(func(t *workload.State) { t.Pods = 0 })),
			ready: "True/Scheduled",
		},
		{
			name: "the cache shows no pod yet", in: makeInputs(limited(24*time.Hour), oldest(time.Time{})),
			ready: "True/Scheduled", wake: at("03:00:01").AddDate(0, 0, 1),
		},
		{
			name: "the manager watches no pods", in: makeInputs(limited(24*time.Hour), func(in *Input) { in.PodAges = &PodAges{Unwatched: true} }),
			ready: "False/PodsNotWatched",
		},
		{
			name: "the oldest pod is too old", in: makeInputs(limited(24*time.Hour), oldest(yesterday)),
			send: at("03:00:01"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "it has been too old for days, and has no deadline", in: makeInputs(limited(24*time.Hour), oldest(yesterday.AddDate(0, 0, -3))),
			send: at("03:00:01").AddDate(0, 0, -3), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "no slot", in: makeInputs(limited(24*time.Hour), oldest(yesterday), noSlot),
			ready: "True/BudgetExhausted", slot: true,
		},
		{
			name: "a paused target is waited for, however long it takes",
			in:   makeInputs(limited(24*time.Hour), oldest(yesterday), withTarget(func(t *workload.State) { t.Paused = true })), ready: "True/TargetPaused",
		},
		{
			name: "a rollout replaces the pods", in: makeInputs(limited(24*time.Hour), func(in *Input) { in.Restart.Status.NextAgeTime = metaAt("03:00:01") }, withTarget(func(t *workload.State) { t.Rollout.Updating = true })),
			ready: "True/TargetRolling",
		},
		{
			name: "OnDelete replaces no pods", in: makeInputs(limited(24*time.Hour), oldest(yesterday), withTarget(func(t *workload.State) { t.OnDelete = true })),
			ready: "False/StrategyOnDelete",
		},
		{
			name: "suspended", in: makeInputs(limited(24*time.Hour), oldest(yesterday), withSpec(suspended)), ready: "True/Suspended",
		},
		{
			name:  "pods that a restart has not replaced are not restarted for it again",
			in:    makeInputs(limited(24*time.Hour), oldest(yesterday.AddDate(0, 0, -3)), withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("02:00:00")) })),
			ready: "True/Scheduled", wake: at("02:00:00").AddDate(0, 0, 1),
		},
		{
			name: "nor if the restart was reverted", in: makeInputs(limited(24*time.Hour), oldest(yesterday.AddDate(0, 0, -3)), func(in *Input) { in.Restart.Status.LastAgeTime = metaAt("02:00:00") }),
			ready: "True/Scheduled", wake: at("02:00:00").AddDate(0, 0, 1),
		},
		{
			name: "a time in the future replaces nothing", in: makeInputs(limited(24*time.Hour), oldest(yesterday), withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("04:00:00")) })),
			send: at("03:00:01"), active: true, ready: "True/Restarting", wake: at("03:30:01"),
		},
		{
			name: "no pod is looked at before the time that is known",
			in:   makeInputs(limited(24*time.Hour), func(in *Input) { in.Restart.Status.NextAgeTime = metaAt("05:00:00") }), ready: "True/Scheduled", wake: at("05:00:00"),
		},
		{
			name: "too old before the window opens", in: makeInputs(windowAt("0 5 * * *", time.Hour), limited(time.Hour), oldest(at("02:00:01"))),
			ready: "True/Scheduled", wake: at("05:00:00"),
		},
		{
			name: "too old since the last window", in: makeInputs(windowAt("0 5 * * *", time.Hour), limited(time.Hour), oldest(at("04:30:00").AddDate(0, 0, -1))),
			ready: "True/WindowClosed", wake: at("05:00:00"),
		},
		{
			name: "one restart serves the tick of a schedule and the age",
			in:   makeInputs(withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxPodAgeSeconds = 86400 }), oldest(yesterday)),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name:  "young pods, before a tick of the schedule",
			in:    makeInputs(now("02:30:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxPodAgeSeconds = 86400 }), oldest(at("02:20:00"))),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
	})
}

// TestAgeIsLive checks that the pods are read from the API server before a restart, since the cache
// may still show pods that were already replaced.
func TestAgeIsLive(t *testing.T) {
	in := makeInputs(limited(time.Hour), noSlot)
	if d := Decide(in); d.Needs != NeedPodAges {
		t.Fatalf("it needs %v, want the ages of the pods", d.Needs)
	}
	in.PodAges = &PodAges{Oldest: at("01:00:00")}
	if d := Decide(in); d.Needs != NeedSlot || !d.WaitingSince.Equal(at("02:00:00")) {
		t.Fatalf("it needs %v and has waited since %s, want a slot since 02:00", d.Needs, d.WaitingSince)
	}
	in.HasSlot = true
	if d := Decide(in); d.Needs != NeedLivePodAges || d.Status.Active != nil {
		t.Fatalf("it needs %v, want the ages that the API server has", d.Needs)
	}
	in.PodAges = &PodAges{Oldest: at("02:59:00"), Live: true}
	if d := Decide(in); d.Needs != NeedNothing || d.Status.Active != nil || !d.Status.NextAgeTime.Time.Equal(at("03:59:00")) {
		t.Fatalf("pods that were replaced since: %+v", d)
	}
}

// TestAgeAfterACrash checks a restart that was started but whose tick was not sent. The tick must
// be sent if the pods are still too old; otherwise the restart must be taken back without a history
// entry.
func TestAgeAfterACrash(t *testing.T) {
	started := func(in *Input) {
		limited(time.Hour)(in)
		unsent(in)
		in.Restart.Status.NextAgeTime = metaAt("03:00:00")
		active(in)
		in.Restart.Status.NextScheduleTime = nil
		in.Restart.Status.Active.Trigger = tidekeeperv1.TriggerAge
	}
	for _, tc := range []struct {
		name string
		in   Input
		sent bool
	}{
		{"the pods are as old", makeInputs(started, oldest(at("02:00:00"))), true},
		{"they were replaced", makeInputs(started, oldest(at("02:30:00"))), false},
		{"the limit is gone", makeInputs(started, withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxPodAgeSeconds, s.Schedule = 0, "0 3 * * *" })), false},
		{"suspended", makeInputs(started, withSpec(suspended)), false},
		{"paused", makeInputs(started, withTarget(func(t *workload.State) { t.Paused = true }), oldest(at("02:00:00"))), false},
		{"another target", makeInputs(started, oldest(at("02:00:00")), func(in *Input) {
			in.Restart.Status.Active.TargetRef = &tidekeeperv1.TargetRef{Kind: "Deployment", Name: "api"}
		}), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.in)
			if sent := d.Send.Equal(at("03:00:00")); sent != tc.sent || (d.Status.Active != nil) != tc.sent || len(d.Records) > 0 || d.Needs != NeedNothing {
				t.Errorf("%+v", d)
			}
		})
	}
	in := makeInputs(started)
	if d := Decide(in); d.Needs != NeedLivePodAges {
		t.Errorf("it needs %v, want the ages of the pods", d.Needs)
	}
}

// TestAgeSpread checks that a spread moves restarts to times before the age limit, and never past
// it.
func TestAgeSpread(t *testing.T) {
	in := makeInputs(limited(time.Hour), oldest(at("02:30:00")), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.SpreadSeconds = 1200 }))
	due := Decide(in).Status.NextAgeTime.UTC()
	if want := at("03:10:00").Add(place(in.Restart)); !due.Equal(want) || !due.Before(at("03:30:00")) {
		t.Errorf("due at %s, want %s", due, want)
	}
}

func TestAgeMessages(t *testing.T) {
	message := func(in Input) string {
		return meta.FindStatusCondition(Decide(in).Status.Conditions, tidekeeperv1.ConditionReady).Message
	}
	age := func(s *tidekeeperv1.ScheduledRestartSpec) { s.MaxPodAgeSeconds = 3600 }
	for want, in := range map[string]Input{
		"no pod may be older than 1h0m0s, so that a restart is due at 2026-06-10T03:30:00Z or later": makeInputs(limited(time.Hour), oldest(at("02:30:00"))),
		"no pod may be older than 1h0m0s": makeInputs(limited(time.Hour), oldest(time.Time{})),
		"next restart at 2026-06-10T03:00:00Z; no pod may be older than 1h0m0s, so that a restart is due at 2026-06-10T03:30:00Z or later": makeInputs(now("02:45:00"), withSpec(age), oldest(at("02:30:00"))),
		"a restart is due and waits for Freeze sale until 2026-06-12T00:00:00Z: sale": makeInputs(limited(time.Hour), oldest(at("01:30:00")), func(in *Input) {
			in.Freezes = []period.Period{{Name: "sale", Reason: "sale", From: at("01:00:00"), Until: at("00:00:00").AddDate(0, 0, 2)}}
		}),
		"a restart is due and waits: Deployment web is paused": makeInputs(limited(time.Hour), oldest(at("01:30:00")), withTarget(func(t *workload.State) { t.Paused = true })),
	} {
		if got := message(in); got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
	}
	if got := Gates(makeInputs(limited(time.Hour)))[0].Message; got != "there is no schedule; no pod may be older than 1h0m0s" {
		t.Errorf("the gate says %q", got)
	}
}

// TestAgeTick checks the ticks of pods that become too old inside a window, between two windows, or
// in a window that is too short.
func TestAgeTick(t *testing.T) {
	day := func(days int, clock string) time.Time { return at(clock).AddDate(0, 0, days) }
	night := windowAt("0 22 * * *", 8*time.Hour)
	for _, tc := range []struct {
		name    string
		windows []func(*Input)
		since   time.Time
		limit   time.Duration
		took    time.Duration
		want    time.Time
	}{
		{name: "no windows", since: day(0, "01:00:00"), limit: 24 * time.Hour, want: day(1, "01:00:00")},
		{name: "in a window", windows: []func(*Input){night}, since: day(0, "01:00:00"), limit: 24 * time.Hour, want: day(1, "01:00:00")},
		{name: "as a window opens", windows: []func(*Input){night}, since: day(0, "22:00:00"), limit: 24 * time.Hour, want: day(1, "22:00:00")},
		{name: "between two windows: in the one before, when it opens", windows: []func(*Input){night}, since: day(0, "12:00:00"), limit: 24 * time.Hour, want: day(0, "22:00:00")},
		{name: "as a window closes", windows: []func(*Input){night}, since: day(0, "06:00:00"), limit: 24 * time.Hour, want: day(0, "22:00:00")},
		{name: "too late in a window", windows: []func(*Input){night}, since: day(0, "05:55:00"), limit: 24 * time.Hour, took: 10 * time.Minute, want: day(0, "22:00:00")},
		{name: "between two windows, of pods that were created in the one before", windows: []func(*Input){night}, since: day(0, "22:30:00"), limit: 20 * time.Hour, want: day(1, "02:00:00")},
		{name: "pods of the last minutes of a window cannot last", windows: []func(*Input){night}, since: day(1, "05:58:00"), limit: 10 * time.Hour, want: day(1, "22:00:00")},
		{name: "no pods can last from one window to the next: at the end of the window", windows: []func(*Input){night}, since: day(0, "23:00:00"), limit: 10 * time.Hour, took: 5 * time.Minute, want: day(1, "05:45:00")},
		{name: "created between two windows, and too old before the next", windows: []func(*Input){night}, since: day(0, "07:00:00"), limit: time.Hour, want: day(0, "22:00:00")},
		{name: "a week of windows that follow each other", windows: []func(*Input){windowAt("0 0 * * *", 24*time.Hour)}, since: day(0, "07:00:00"), limit: time.Hour, want: day(0, "08:00:00")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := makeInputs(tc.windows...)
			if got := ageTick(tc.since, tc.limit, in.Windows, tc.took); !got.Equal(tc.want) {
				t.Errorf("the tick is %s, want %s", formatTime(got), formatTime(tc.want))
			}
		})
	}
}

// TestAgeTicksOfANightlyWindow checks that each tick is later than the creation of the pods and
// inside a window. If the age limit is long enough for pods to last from each window to the next,
// no pod may exceed it.
func TestAgeTicksOfANightlyWindow(t *testing.T) {
	in := makeInputs(windowAt("0 22 * * *", 8*time.Hour))
	for limit := 17 * time.Hour; limit <= 72*time.Hour; limit += 47 * time.Minute {
		since := at("12:34:56")
		for range 30 {
			tick := ageTick(since, limit, in.Windows, time.Minute)
			if !tick.After(since) {
				t.Fatalf("with %s, pods of %s are due at %s", limit, formatTime(since), formatTime(tick))
			}
			if _, open := in.Windows.ClosesAt(tick); !open {
				t.Fatalf("with %s, pods of %s are due at %s, outside the windows", limit, formatTime(since), formatTime(tick))
			}
			if age := tick.Sub(since); age > limit {
				t.Fatalf("with %s, pods of %s become %s old", limit, formatTime(since), age)
			}
			since = tick.Add(time.Minute)
		}
	}
}
