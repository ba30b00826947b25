// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// at is a time of the day on which these tests take place.
func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-06-10T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func metaAt(clock string) *metav1.Time { return &metav1.Time{Time: at(clock)} }

// makeInputs are those of a ScheduledRestart at 03:00 of a healthy Deployment,
// whose status is up to date and whose budget is open, at 03:00:01.
func makeInputs(changes ...func(*inputs)) inputs {
	ticks, err := schedule.Parse("0 3 * * *", "UTC")
	if err != nil {
		panic(err)
	}
	in := inputs{
		restart: &tidekeeperv1.ScheduledRestart{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", Generation: 1, CreationTimestamp: *metaAt("00:00:00")},
			Spec: tidekeeperv1.ScheduledRestartSpec{
				TargetRef: tidekeeperv1.TargetRef{Kind: KindDeployment, Name: "web"}, Schedule: "0 3 * * *", TimeZone: "UTC",
				StartingDeadlineSeconds: 900, ProgressDeadlineSeconds: 1800, Precondition: tidekeeperv1.PreconditionHealthy,
				FailureLimit: 3, HistoryLimit: 10,
			},
			Status: tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1, NextScheduleTime: metaAt("03:00:00")},
		},
		ticks:  ticks,
		target: &target{kind: KindDeployment, name: "web", uid: "t", pods: 3, rollout: rollout{available: true}},
		slot:   true,
		now:    at("03:00:01"),
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func now(clock string) func(*inputs) { return func(in *inputs) { in.now = at(clock) } }

func withTarget(change func(*target)) func(*inputs) {
	return func(in *inputs) { change(in.target) }
}

func withSpec(change func(*tidekeeperv1.ScheduledRestartSpec)) func(*inputs) {
	return func(in *inputs) { change(&in.restart.Spec) }
}

func noSlot(in *inputs) { in.slot = false }

// edited is a change of the spec that nobody has seen yet.
func edited(change func(*tidekeeperv1.ScheduledRestartSpec)) func(*inputs) {
	return func(in *inputs) {
		change(&in.restart.Spec)
		in.restart.Generation = 2
	}
}

// active is a restart of the 03:00 tick that was claimed at 03:00:01.
func active(in *inputs) {
	in.restart.Status.NextScheduleTime = &metav1.Time{Time: at("03:00:00").AddDate(0, 0, 1)}
	in.restart.Status.LastScheduleTime = metaAt("03:00:00")
	in.restart.Status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: *metaAt("03:00:00"), StartedTime: *metaAt("03:00:01"), Trigger: tidekeeperv1.TriggerSchedule, TargetUID: "t",
	}
}

// sentTo lets the target carry the 03:00 tick, in the middle of its rollout.
func sentTo(t *target) {
	t.restartedAt, t.lastTick = clockTime(at("03:00:00")), clockTime(at("03:00:00"))
	t.rollout = rollout{updating: true, message: "1 of 3 pods are updated"}
}

// complete ends the rollout of the target.
func complete(t *target) { t.rollout = rollout{available: true} }

// noPods: how they came up was asked for, and nobody knows.
func noPods(in *inputs) { in.startups = []time.Duration{} }

func suspended(spec *tidekeeperv1.ScheduledRestartSpec) { spec.Suspend = true }

func TestDecide(t *testing.T) {
	tomorrow := at("03:00:00").AddDate(0, 0, 1)
	for _, tt := range []struct {
		name string
		in   inputs

		ready   string    // status/reason of Ready
		next    time.Time // tick
		wake    time.Time
		send    time.Time
		active  bool
		slot    bool     // wants one
		live    bool     // wants the target live
		asks    bool     // wants to know how long the pods took
		records []string // outcome reason tick [earlier]
	}{
		// Waiting for the tick.
		{
			name: "before the tick it waits for it", in: makeInputs(now("02:00:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "a new object counts from its creation on, also if nobody looked at it before the tick",
			in:   makeInputs(func(in *inputs) { in.restart.Status = tidekeeperv1.ScheduledRestartStatus{} }),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "the spread delays the start, not the tick", in: makeInputs(func(in *inputs) { in.offset = 5 * time.Minute }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:05:00"),
		},
		{
			name: "after the spread it starts the tick", in: makeInputs(now("03:05:00"), func(in *inputs) { in.offset = 5 * time.Minute }),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:35:00"),
		},

		// Starting.
		{
			name: "a due tick is claimed and sent", in: makeInputs(),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "without a slot it waits for one", in: makeInputs(noSlot),
			ready: "True/Budget", next: at("03:00:00"), slot: true, wake: at("03:15:01"),
		},
		{
			name: "a paused target is waited for", in: makeInputs(withTarget(func(t *target) { t.paused = true })),
			ready: "True/TargetPaused", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a target that is being rolled out is waited for", in: makeInputs(withTarget(func(t *target) { t.rollout = rollout{updating: true} })),
			ready: "True/TargetRolling", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "an unhealthy target is waited for", in: makeInputs(withTarget(func(t *target) { t.rollout.available = false })),
			ready: "True/TargetUnhealthy", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a rollout that is stuck is unhealthy", in: makeInputs(withTarget(func(t *target) { t.rollout = rollout{updating: true, exceeded: true} })),
			ready: "True/TargetUnhealthy", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "without a precondition an unhealthy target is restarted",
			in: makeInputs(withTarget(func(t *target) { t.rollout = rollout{updating: true, exceeded: true} }),
				withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "without a precondition a target that is being rolled out is waited for all the same",
			in: makeInputs(withTarget(func(t *target) { t.rollout = rollout{updating: true} }),
				withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })),
			ready: "True/TargetRolling", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a target that is not there is waited for", in: makeInputs(func(in *inputs) { in.target = nil }),
			ready: "False/TargetNotFound", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "OnDelete rolls nothing: skipped", in: makeInputs(withTarget(func(t *target) { t.onDelete = true })),
			ready: "False/StrategyOnDelete", next: tomorrow, wake: tomorrow, records: []string{"Skipped StrategyOnDelete 03:00:00"},
		},
		{
			name:  "a target that somebody restarted after the tick is served",
			in:    makeInputs(now("03:10:00"), withTarget(func(t *target) { t.restartedAt = clockTime(at("03:05:00")) })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Skipped AlreadyRestarted 03:00:00"},
		},
		{
			name: "a restart before the tick serves nothing", in: makeInputs(withTarget(func(t *target) { t.restartedAt = clockTime(at("02:59:59")) })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "a restart in the future serves nothing", in: makeInputs(withTarget(func(t *target) { t.restartedAt = clockTime(at("04:00:00")) })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "what is no time serves nothing", in: makeInputs(withTarget(func(t *target) { t.restartedAt = "just now" })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},

		// Missing.
		{
			name: "at the deadline it is started", in: makeInputs(now("03:15:00")),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:45:00"),
		},
		{
			name: "after the deadline it is missed", in: makeInputs(now("03:15:01")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed DeadlineExceeded 03:00:00"},
		},
		{
			name: "after the deadline the closed gate is the reason", in: makeInputs(now("03:15:01"), withTarget(func(t *target) { t.paused = true })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed TargetPaused 03:00:00"},
		},
		{
			name: "after the deadline a full budget is the reason",
			in: makeInputs(now("03:15:01"), noSlot, func(in *inputs) {
				in.restart.Status.Conditions = []metav1.Condition{{Type: ConditionReady, Reason: ReasonBudget}}
			}),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed Budget 03:00:00"},
		},
		{
			name: "days without a manager are one record, and the last tick counts",
			in: makeInputs(func(in *inputs) {
				in.restart.Status.NextScheduleTime = &metav1.Time{Time: at("03:00:00").AddDate(0, 0, -4)}
			}),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
			records: []string{"Missed Superseded 03:00:00 +3"},
		},

		// Stopping.
		{
			name: "suspended it waits for nothing", in: makeInputs(withSpec(suspended), func(in *inputs) { in.restart.Status.NextScheduleTime = nil }),
			ready: "True/Suspended",
		},
		{
			name: "a tick that was due when the schedule was suspended is skipped", in: makeInputs(edited(suspended)),
			ready: "True/Suspended", records: []string{"Skipped Suspended 03:00:00"},
		},
		{
			name: "a tick that was not due when the schedule was suspended never was", in: makeInputs(now("02:00:00"), edited(suspended)),
			ready: "True/Suspended",
		},
		{
			name:  "enabled again it starts with the next tick, not with those in between",
			in:    makeInputs(now("04:00:00"), edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), func(in *inputs) { in.restart.Status.NextScheduleTime = nil }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow,
		},
		{
			name: "an edit leaves a tick that is due to be decided",
			in:   makeInputs(edited(func(s *tidekeeperv1.ScheduledRestartSpec) { s.HistoryLimit = 5 })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "a new schedule counts from now on",
			in: makeInputs(now("02:00:00"), edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), func(in *inputs) {
				in.ticks, _ = schedule.Parse("30 1 * * *", "UTC")
			}),
			ready: "True/Scheduled", next: at("01:30:00").AddDate(0, 0, 1), wake: at("01:30:00").AddDate(0, 0, 1),
		},
		{
			name: "a schedule that cannot be read stops it", in: makeInputs(func(in *inputs) { in.ticks, in.invalid = nil, errors.New("30 February never happens") }),
			ready: "False/InvalidSchedule", records: []string{"Skipped InvalidSchedule 03:00:00"},
		},
		{
			name: "failures in a row stop it", in: makeInputs(now("02:00:00"), func(in *inputs) { in.restart.Status.ConsecutiveFailures = 3 }),
			ready: "False/FailureLimit",
		},
		{
			name:  "an edit of the spec lets it go on after failures",
			in:    makeInputs(now("02:00:00"), edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), func(in *inputs) { in.restart.Status.ConsecutiveFailures = 3 }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},

		// Tracking.
		{
			name: "a rollout under way is waited for", in: makeInputs(active, withTarget(sentTo), now("03:01:00")),
			ready: "True/Restarting", active: true, next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "how the pods of a complete rollout came up is asked for", in: makeInputs(active, withTarget(sentTo), withTarget(complete), now("03:02:00")),
			ready: "True/Restarting", active: true, next: tomorrow, asks: true,
		},
		{
			name: "a complete rollout is a success", in: makeInputs(active, withTarget(sentTo), withTarget(complete), noPods, now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "a complete rollout of somebody else's restart is a success too",
			in: makeInputs(active, withTarget(sentTo), withTarget(func(t *target) {
				t.rollout, t.restartedAt = rollout{available: true}, clockTime(at("03:01:00"))
			}), noPods, now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "the Deployment's own deadline is a failure", in: makeInputs(active, withTarget(sentTo), withTarget(func(t *target) { t.rollout.exceeded = true }), now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed ProgressDeadlineExceeded 03:00:00"},
		},
		{
			name: "our own deadline is a failure", in: makeInputs(active, withTarget(sentTo), now("03:30:01")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed Timeout 03:00:00"},
		},
		{
			name: "a target that is gone is a failure", in: makeInputs(active, func(in *inputs) { in.target = nil }),
			ready: "False/TargetNotFound", next: tomorrow, wake: tomorrow, records: []string{"Failed TargetNotFound 03:00:00"},
		},
		{
			name: "another target of that name is a failure, and not restarted", in: makeInputs(active, withTarget(func(t *target) { t.uid = "other" })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed TargetNotFound 03:00:00"},
		},
		{
			name: "suspending leaves a restart alone", in: makeInputs(active, withTarget(sentTo), edited(suspended), now("03:01:00")),
			ready: "True/Restarting", active: true, wake: at("03:30:01"),
		},

		// A crash between the claim and the patch.
		{
			name: "a claimed tick that was not sent is sent", in: makeInputs(active, now("03:01:00")),
			send: at("03:00:00"), ready: "True/Restarting", active: true, next: tomorrow,
		},
		{
			name: "a claimed tick that was not sent waits for its target", in: makeInputs(active, now("03:01:00"), withTarget(func(t *target) { t.paused = true })),
			ready: "True/TargetPaused", active: true, next: tomorrow, wake: at("03:15:01"),
		},
		{
			name: "a claimed tick is not given up on what a cache says", in: makeInputs(active, now("03:15:01")),
			live: true, ready: "True/Restarting", active: true, next: tomorrow,
		},
		{
			name: "a claimed tick that was not sent before its deadline is missed", in: makeInputs(active, now("03:15:01"), func(in *inputs) { in.live = true }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed DeadlineExceeded 03:00:00"},
		},
		{
			name: "a restart that was taken back is not sent again", in: makeInputs(active, now("03:01:00"), withTarget(func(t *target) { t.lastTick = clockTime(at("03:00:00")) }), func(in *inputs) { in.live = true }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed Reverted 03:00:00"},
		},
		{
			name: "nor if only this process knows that it was sent", in: makeInputs(active, now("03:01:00"), func(in *inputs) { in.sent, in.live = at("03:00:00"), true }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed Reverted 03:00:00"},
		},

		// Requests.
		{
			name: "a request is one more tick", in: makeInputs(now("02:00:05"), requestAt("02:00:00")),
			send: at("02:00:00"), active: true, ready: "True/Restarting", next: at("03:00:00"), wake: at("02:30:05"),
		},
		{
			name: "a request is served once", in: makeInputs(now("02:00:05"), requestAt("02:00:00"), func(in *inputs) { in.restart.Status.LastRequestTime = metaAt("02:00:00") }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "a request for later is waited for", in: makeInputs(now("02:00:05"), requestAt("02:30:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("02:30:00"),
		},
		{
			name: "a request is served while the schedule is suspended",
			in:   makeInputs(now("02:00:05"), requestAt("02:00:00"), withSpec(suspended), func(in *inputs) { in.restart.Status.NextScheduleTime = nil }),
			send: at("02:00:00"), active: true, ready: "True/Restarting", wake: at("02:30:05"),
		},
		{
			name: "an old request is missed", in: makeInputs(now("02:30:00"), requestAt("02:00:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"), records: []string{"Missed DeadlineExceeded 02:00:00"},
		},
		{
			name: "one restart serves a request and a tick", in: makeInputs(requestAt("02:59:00")),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
			records: []string{"Skipped Superseded 02:59:00"},
		},
		{
			name: "a request that is no time is none", in: makeInputs(now("02:00:05"), func(in *inputs) {
				in.restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "now"}
			}),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(tt.in)
			got := map[string]any{
				"ready": "", "next": time.Time{}, "wake": d.wake, "send": d.send, "active": d.status.Active != nil,
				"wants slot": d.wantsSlot, "wants live": d.wantsLive, "asks for pods": d.wantsStartups,
			}
			if ready := meta.FindStatusCondition(d.status.Conditions, ConditionReady); ready != nil {
				got["ready"] = string(ready.Status) + "/" + ready.Reason
			}
			if d.status.NextScheduleTime != nil {
				got["next"] = d.status.NextScheduleTime.Time
			}
			var records []string
			for _, r := range d.records {
				line := string(r.Outcome) + " " + r.Reason + " " + r.ScheduledTime.UTC().Format(time.TimeOnly)
				if r.EarlierTicks > 0 {
					line += " +" + strconv.Itoa(int(r.EarlierTicks))
				}
				records = append(records, line)
			}
			got["records"] = records
			want := map[string]any{
				"ready": tt.ready, "next": tt.next, "wake": tt.wake, "send": tt.send, "active": tt.active,
				"wants slot": tt.slot, "wants live": tt.live, "asks for pods": tt.asks, "records": tt.records,
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}

			// Deciding again on what was written changes nothing, as long as
			// nothing happens.
			if tt.live {
				return
			}
			again := tt.in
			again.restart = tt.in.restart.DeepCopy()
			again.restart.Status = d.status
			again.slot = tt.in.slot
			second := decide(again)
			if d.status.Active == nil || len(d.records) > 0 && tt.send.IsZero() {
				if diff := cmp.Diff(d.status, second.status); diff != "" {
					t.Errorf("deciding twice is not deciding once (-first +second):\n%s", diff)
				}
			}
		})
	}
}

func requestAt(clock string) func(*inputs) {
	return func(in *inputs) {
		in.restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: clockTime(at(clock))}
	}
}

// TestFailureLimit: failures in a row stop the schedule, a success in between
// begins the count anew.
func TestFailureLimit(t *testing.T) {
	fail := func(in *inputs) {
		active(in)
		sentTo(in.target)
		in.target.rollout.exceeded = true
		in.now = at("03:02:00")
	}
	succeed := func(in *inputs) {
		active(in)
		sentTo(in.target)
		complete(in.target)
		noPods(in)
		in.now = at("03:02:00")
	}
	status := tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1}
	for i, step := range []struct {
		do      func(*inputs)
		stopped bool
	}{{fail, false}, {fail, false}, {succeed, false}, {fail, false}, {fail, false}, {fail, true}} {
		in := makeInputs(step.do)
		in.restart.Status.ConsecutiveFailures = status.ConsecutiveFailures
		status = decide(in).status
		if stopped := status.NextScheduleTime == nil; stopped != step.stopped {
			t.Fatalf("after step %d the schedule is stopped: %v, want %v", i, stopped, step.stopped)
		}
	}
}

// TestHistory: the latest first, and no more than asked for.
func TestHistory(t *testing.T) {
	in := makeInputs(now("03:20:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.HistoryLimit = 2 }))
	for day := range 3 {
		in.restart.Status.History = append(in.restart.Status.History, tidekeeperv1.RestartRecord{
			ScheduledTime: metav1.Time{Time: at("03:00:00").AddDate(0, 0, -1-day)}, Outcome: tidekeeperv1.OutcomeSucceeded,
		})
	}
	history := decide(in).status.History
	if len(history) != 2 || history[0].Outcome != tidekeeperv1.OutcomeMissed || history[1].Outcome != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("history: %+v, want what was just missed, then what succeeded before", history)
	}
}

// TestClockSetBack: a clock that is set back by hours while a restart is under
// way neither ends it before it began, nor moves its deadline by as much.
func TestClockSetBack(t *testing.T) {
	in := makeInputs(active, withTarget(sentTo), now("00:10:00"))
	d := decide(in)
	if !d.status.Active.StartedTime.Time.Equal(in.now) || !d.wake.Equal(in.now.Add(30*time.Minute)) {
		t.Errorf("started at %s, looked at again at %s; want now, and after the half hour that it may take", d.status.Active.StartedTime, d.wake)
	}
	complete(in.target)
	noPods(&in)
	last := decide(in).status.History[0]
	if last.Outcome != tidekeeperv1.OutcomeSucceeded || last.CompletedTime.Before(last.StartedTime) {
		t.Errorf("record %+v; want that it succeeded, and did not end before it began", last)
	}
}
