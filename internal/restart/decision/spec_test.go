// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// TestStop checks schedules that are stopped, edited or invalid.
func TestStop(t *testing.T) {
	check(t, []row{
		{
			name: "a suspended schedule waits for nothing", in: makeInputs(withSpec(suspended), func(in *Input) { in.Restart.Status.NextScheduleTime = nil }),
			ready: "True/Suspended",
		},
		{
			name: "a tick that was due when the schedule was suspended is skipped", in: makeInputs(edited(suspended)),
			ready: "True/Suspended", records: []string{"Skipped Suspended 03:00:00"},
		},
		{
			name: "a tick that was not due when the schedule was suspended is not recorded", in: makeInputs(now("02:00:00"), edited(suspended)),
			ready: "True/Suspended",
		},
		{
			name:  "a resumed schedule starts with the next tick, not with those in between",
			in:    makeInputs(now("04:00:00"), edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), func(in *Input) { in.Restart.Status.NextScheduleTime = nil }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow,
		},
		{
			name: "an edit leaves a tick that is due to be decided",
			in:   makeInputs(edited(func(s *tidekeeperv1.ScheduledRestartSpec) { s.HistoryLimit = 5 })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "a new schedule counts from now on",
			in: makeInputs(now("02:00:00"), edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), func(in *Input) {
				in.Ticks, _ = schedule.Parse("30 1 * * *", "UTC")
			}),
			ready: "True/Scheduled", next: at("01:30:00").AddDate(0, 0, 1), wake: at("01:30:00").AddDate(0, 0, 1),
		},
		{
			name: "an invalid schedule stops it", in: makeInputs(func(in *Input) { in.Ticks, in.Invalid = nil, errors.New("30 February never happens") }),
			ready: "False/InvalidSchedule", records: []string{"Skipped InvalidSchedule 03:00:00"},
		},
		{
			name: "consecutive failures stop it", in: makeInputs(now("02:00:00"), func(in *Input) { in.Restart.Status.ConsecutiveFailures = 3 }),
			ready: "False/FailureLimit",
		},
		{
			name:  "an edit of the spec resumes it after failures",
			in:    makeInputs(now("02:00:00"), edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), func(in *Input) { in.Restart.Status.ConsecutiveFailures = 3 }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},

		{
			name:  "a due tick that the edited schedule no longer has is skipped",
			in:    makeInputs(edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), sunday),
			ready: "True/Scheduled", next: nextSunday, wake: nextSunday, records: []string{"Skipped Edited 03:00:00"},
		},
		{
			name:  "even while it waits for its place in the spread",
			in:    makeInputs(edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), sunday, func(in *Input) { in.Offset = 40 * time.Minute }),
			ready: "True/Scheduled", next: nextSunday, wake: nextSunday.Add(40 * time.Minute), records: []string{"Skipped Edited 03:00:00"},
		},
		{
			name: "a due tick does not apply to another target",
			in: makeInputs(func(in *Input) {
				in.Restart.Status.ObservedTargetRef = &tidekeeperv1.TargetRef{Kind: "Deployment", Name: "api"}
			}, edited(func(*tidekeeperv1.ScheduledRestartSpec) {})),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Skipped Edited 03:00:00"},
		},
	})
}

// TestFailureLimit checks that consecutive failures stop the schedule, and that a success in
// between resets the number of failures.
func TestFailureLimit(t *testing.T) {
	fail := func(in *Input) {
		active(in)
		sentTo(in.Target)
		in.Target.Rollout.Exceeded = true
		in.Now, in.Live = at("03:02:00"), true
	}
	succeed := func(in *Input) {
		active(in)
		sentTo(in.Target)
		complete(in.Target)
		noPods(in)
		in.Now = at("03:02:00")
	}
	status := tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1}
	for i, step := range []struct {
		do      func(*Input)
		stopped bool
	}{{fail, false}, {fail, false}, {succeed, false}, {fail, false}, {fail, false}, {fail, true}} {
		in := makeInputs(step.do)
		in.Restart.Status.ConsecutiveFailures = status.ConsecutiveFailures
		status = Decide(in).Status
		if stopped := status.NextScheduleTime == nil; stopped != step.stopped {
			t.Fatalf("after step %d the schedule is stopped: %v, want %v", i, stopped, step.stopped)
		}
	}
}
