// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestMiss checks decisions after a tick's deadline has passed.
func TestMiss(t *testing.T) {
	check(t, []row{
		{
			name: "at the deadline it is started", in: makeInputs(now("03:15:00")),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:45:00"),
		},
		{
			name: "after the deadline it is missed", in: makeInputs(now("03:15:01")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed DeadlineExceeded 03:00:00"},
		},
		{
			name: "after the deadline the blocker is the reason", in: makeInputs(now("03:15:01"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed TargetPaused 03:00:00"},
		},
		{
			name: "after the deadline the used-up budget is the reason",
			in: makeInputs(now("03:15:01"), noSlot, func(in *Input) {
				in.Restart.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Reason: tidekeeperv1.ReasonBudgetExhausted}}
			}),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed BudgetExhausted 03:00:00"},
		},
		{
			name: "days without a manager are one record, and the last tick counts",
			in: makeInputs(func(in *Input) {
				in.Restart.Status.NextScheduleTime = &metav1.Time{Time: at("03:00:00").AddDate(0, 0, -4)}
			}),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
			records: []string{"Missed Superseded 03:00:00 +3"},
		},
	})
}

// TestMissesAreReported checks that every tick is recorded while a blocker lasts, with any interval
// and deadline, and that the number of status writes is bounded.
func TestMissesAreReported(t *testing.T) {
	for _, expression := range []string{"* * * * *", "*/15 * * * *", "0 * * * *"} {
		for _, deadline := range []int32{1, 30, 900, 86400} {
			in := makeInputs(now("00:00:30"), withTarget(func(t *workload.State) { t.Paused = true }), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) {
				s.StartingDeadlineSeconds = deadline
			}))
			in.Ticks, _ = schedule.Parse(expression, "UTC")
			in.Restart.Status = tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1}
			start, decisions, writes, reported := in.Now, 0, 0, 0
			var longest time.Duration
			last := in.Now
			for in.Now.Before(start.Add(6 * time.Hour)) {
				d := Decide(in)
				decisions++
				if diff := cmp.Diff(in.Restart.Status, d.Status); diff != "" {
					writes++
				}
				for _, r := range d.Records {
					if r.Outcome != tidekeeperv1.OutcomeMissed || r.Reason != tidekeeperv1.ReasonTargetPaused {
						t.Fatalf("%s, %d s: %+v; want that it is missed because of its blocker", expression, deadline, r)
					}
					reported += 1 + int(r.EarlierTicks)
				}
				if len(d.Records) > 0 {
					longest, last = max(longest, in.Now.Sub(last)), in.Now
				}
				in.Restart.Status = d.Status
				if !d.Wake.After(in.Now) {
					t.Fatalf("%s, %d s: at %s it wakes at %s", expression, deadline, in.Now, d.Wake)
				}
				in.Now = d.Wake
			}
			due := 0
			for tick, ok := in.Ticks.Next(start); ok && tick.Before(last.Add(-time.Duration(min(deadline, 3600))*time.Second)); tick, ok = in.Ticks.Next(tick) {
				due++
			}
			if reported < due {
				t.Errorf("%s, %d s: %d of %d ticks are reported", expression, deadline, reported, due)
			}
			if longest > time.Hour+time.Duration(min(deadline, 3600))*time.Second+2*time.Minute {
				t.Errorf("%s, %d s: nothing is reported for %s", expression, deadline, longest)
			}
			if writes > 6*(60/15+4)+10 || decisions > 6*130 {
				t.Errorf("%s, %d s: %d writes and %d decisions in six hours", expression, deadline, writes, decisions)
			}
		}
	}
}
