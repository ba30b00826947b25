// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestTrack checks decisions while a restart is in progress.
func TestTrack(t *testing.T) {
	check(t, []row{
		{
			name: "a restart of another client with a clock that is minutes ahead is a success too",
			in: makeInputs(active, withTarget(sentTo), withTarget(func(t *workload.State) {
				t.Rollout, t.RestartedAt = workload.Progress{Available: true}, formatTime(at("03:06:00"))
			}), noPods, now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "and one with a clock that is hours ahead, after ours",
			in: makeInputs(active, withTarget(sentTo), withTarget(func(t *workload.State) {
				t.Rollout, t.RestartedAt = workload.Progress{Available: true}, formatTime(at("09:00:00"))
			}), noPods, now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "a tick that is due when a restart completes starts in the next reconcile, with a slot of its own",
			in: makeInputs(active, withTarget(sentTo), withTarget(complete), noPods, now("03:02:00"), func(in *Input) {
				in.Restart.Status.NextScheduleTime = metaAt("03:00:00")
			}),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:02:00"), records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "a rollout in progress is waited for", in: makeInputs(active, withTarget(sentTo), now("03:01:00")),
			ready: "True/Restarting", active: true, next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "a complete rollout needs the startups of its pods", in: makeInputs(active, withTarget(sentTo), withTarget(complete), now("03:02:00")),
			ready: "True/Restarting", active: true, next: tomorrow, asks: true,
		},
		{
			name: "a complete rollout is a success", in: makeInputs(active, withTarget(sentTo), withTarget(complete), noPods, now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "a complete rollout of another client's restart is a success too",
			in: makeInputs(active, withTarget(sentTo), withTarget(func(t *workload.State) {
				t.Rollout, t.RestartedAt = workload.Progress{Available: true}, formatTime(at("03:01:00"))
			}), noPods, now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "the Deployment's own deadline is looked up, as the cache may be stale", in: makeInputs(active, withTarget(sentTo), withTarget(func(t *workload.State) { t.Rollout.Exceeded = true }), now("03:02:00")),
			ready: "True/Restarting", active: true, next: tomorrow, live: true,
		},
		{
			name: "the Deployment's own deadline is a failure", in: makeInputs(active, sentHere, withTarget(sentTo), withTarget(func(t *workload.State) { t.Rollout.Exceeded = true }), now("03:02:00")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed ProgressDeadlineExceeded 03:00:00"},
		},
		{
			name: "at our own deadline the API server is asked, as the cache may be stale", in: makeInputs(active, withTarget(sentTo), now("03:30:01")),
			ready: "True/Restarting", active: true, next: tomorrow, live: true,
		},
		{
			name: "our own deadline is a failure", in: makeInputs(active, sentHere, withTarget(sentTo), now("03:30:01")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed Timeout 03:00:00"},
		},
		{
			name: "a deleted target is a failure", in: makeInputs(active, sentHere, func(in *Input) { in.Target = nil }),
			ready: "False/TargetNotFound", next: tomorrow, wake: tomorrow, records: []string{"Failed TargetNotFound 03:00:00"},
		},
		{
			name: "a target that is deleted before it is known to be restarted is not a failure", in: makeInputs(active, unsent, func(in *Input) { in.Target = nil }),
			ready: "False/TargetNotFound", next: tomorrow, wake: tomorrow, records: []string{"Skipped TargetNotFound 03:00:00"},
		},
		{
			name: "another target of that name is a failure, and not restarted", in: makeInputs(active, sentHere, withTarget(func(t *workload.State) { t.UID = "other" })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed TargetNotFound 03:00:00"},
		},
		{
			name: "suspending leaves a restart alone", in: makeInputs(active, withTarget(sentTo), edited(suspended), now("03:01:00")),
			ready: "True/Restarting", active: true, wake: at("03:30:01"),
		},
	})
}

// TestResend checks decisions after a crash between the status write and the patch of the target.
func TestResend(t *testing.T) {
	check(t, []row{
		{
			name: "a started tick that was not sent is sent", in: makeInputs(active, unsent, now("03:01:00")),
			send: at("03:00:00"), ready: "True/Restarting", active: true, next: tomorrow,
		},
		{
			name: "a started tick that was not sent waits for its target", in: makeInputs(active, unsent, now("03:01:00"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/TargetPaused", active: true, next: tomorrow, wake: at("03:15:01"),
		},
		{
			name: "a started tick is not given up because of a stale cache", in: makeInputs(active, now("03:15:01")),
			live: true, ready: "True/Restarting", active: true, next: tomorrow,
		},
		{
			name: "without a slot it waits for one", in: makeInputs(active, unsent, noSlot, now("03:01:00")),
			ready: "True/BudgetExhausted", active: true, next: tomorrow, wake: at("03:15:01"), slot: true,
		},
		{
			name: "what it waits for is why it is missed", in: makeInputs(active, unsent, now("03:15:01"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed TargetPaused 03:00:00"},
		},
		{
			name: "also if that is gone", in: makeInputs(active, unsent, now("03:15:01"), waited(tidekeeperv1.ReasonFrozen)),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed Frozen 03:00:00"},
		},
		{
			name: "a started tick that was not sent before its deadline is missed", in: makeInputs(active, unsent, now("03:15:01")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Missed DeadlineExceeded 03:00:00"},
		},
		{
			name: "a restart that was reverted is not sent again", in: makeInputs(active, now("03:01:00"), withTarget(func(t *workload.State) { t.LastTick = formatTime(at("03:00:00")) }), func(in *Input) { in.Live = true }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed Reverted 03:00:00"},
		},
		{
			name: "nor if only a revision shows that it was sent", in: makeInputs(active, now("03:01:00"), func(in *Input) { in.Live, in.RolledOut = true, new(true) }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed Reverted 03:00:00"},
		},
		{
			name:   "one that was not sent is sent although a later tick was, before the clock was set back",
			in:     makeInputs(active, unsent, now("03:01:00"), withTarget(func(t *workload.State) { t.LastTick = formatTime(at("03:01:00")) })),
			active: true, ready: "True/Restarting", next: tomorrow, send: at("03:00:00"),
		},
		{
			name: "a started tick that was not sent is no longer sent when the schedule is suspended", in: makeInputs(active, unsent, edited(suspended), now("03:01:00")),
			ready: "True/Suspended", records: []string{"Skipped Suspended 03:00:00"},
		},
		{
			name: "nor when the schedule no longer has it", in: makeInputs(active, unsent, now("03:01:00"), edited(func(*tidekeeperv1.ScheduledRestartSpec) {}), sunday),
			ready: "True/Scheduled", next: nextSunday, wake: nextSunday, records: []string{"Skipped Edited 03:00:00"},
		},
		{
			name: "nor when the target was changed; the next reconcile decides what is due then",
			in: makeInputs(active, unsent, now("03:01:00"), func(in *Input) {
				in.Restart.Status.Active.TargetRef = &tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}
			}, edited(func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Name = "api" })),
			ready: "True/Scheduled", next: tomorrow, wake: at("03:01:00"), records: []string{"Skipped Edited 03:00:00"},
		},
		{
			name: "a restart that was sent is followed until completion although the target was changed",
			in: makeInputs(active, withTarget(sentTo), withTarget(complete), noPods, now("03:02:00"), func(in *Input) {
				in.Restart.Status.Active.TargetRef = &tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}
			}, edited(func(s *tidekeeperv1.ScheduledRestartSpec) { s.TargetRef.Name = "api" })),
			ready: "True/Scheduled", next: tomorrow, wake: at("03:02:00"), records: []string{"Succeeded  03:00:00"},
		},
		{
			name: "a restart that was reverted is not sent again if only this process knows that it was sent", in: makeInputs(active, now("03:01:00"), func(in *Input) { in.Sent, in.Live = at("03:00:00"), true }),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Failed Reverted 03:00:00"},
		},
	})
}

// TestStartsWhenItIsSent checks a restart whose tick is sent long after its planned start, for
// example by another manager. Its start time must become the time at which the tick is sent, so
// that it has the full progress deadline.
func TestStartsWhenItIsSent(t *testing.T) {
	in := makeInputs(active, unsent, now("03:12:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.ProgressDeadlineSeconds = 60 }),
		func(in *Input) { in.SlotAge = 10 * time.Minute })
	d := Decide(in)
	if d.Send.IsZero() || d.Outlived || !d.Status.Active.StartedTime.Time.Equal(in.Now) {
		t.Fatalf("sends %s, outlived: %t, started at %s; want that it is sent, with a slot, and starts now", d.Send, d.Outlived, d.Status.Active.StartedTime)
	}
	in.Restart.Status, in.Now = d.Status, in.Now.Add(40*time.Millisecond)
	sentTo(in.Target)
	if d = Decide(in); d.Status.Active == nil || !d.Wake.Equal(at("03:13:00")) {
		t.Errorf("after 40 ms: records %+v, wakes at %s; want that it is followed for a minute", d.Records, d.Wake)
	}
	late := makeInputs(claimed, now("03:12:00"))
	if d := Decide(late); d.Unchanged || !d.Status.Active.StartedTime.Time.Equal(late.Now) || d.Send.IsZero() {
		t.Errorf("a claim that is sent late: unchanged %t, %+v", d.Unchanged, d.Status.Active)
	}
}

// TestClockSetBack checks a restart in progress after the clock was set back by hours: it must not
// end before its start, and its deadline must not be much later.
func TestClockSetBack(t *testing.T) {
	in := makeInputs(active, withTarget(sentTo), now("00:10:00"))
	d := Decide(in)
	if !d.Status.Active.StartedTime.Time.Equal(in.Now) || !d.Wake.Equal(in.Now.Add(30*time.Minute)) {
		t.Errorf("started at %s, wakes at %s; want now, and after the half hour that it may take", d.Status.Active.StartedTime, d.Wake)
	}
	complete(in.Target)
	noPods(&in)
	last := Decide(in).Status.History[0]
	if last.Outcome != tidekeeperv1.OutcomeSucceeded || last.CompletedTime.Before(last.StartedTime) {
		t.Errorf("record %+v; want that it succeeded, and did not complete before it started", last)
	}
}

// TestPodsOfARecord checks the number of pods in history entries. The entry of a rollout counts
// only the pods that it replaces, without the pods below the partition of a StatefulSet. The entry
// of an eviction counts all pods.
func TestPodsOfARecord(t *testing.T) {
	partitioned := withTarget(func(t *workload.State) { t.Kind, t.Pods, t.Updates = "StatefulSet", 4, 1 })
	for want, in := range map[int32]Input{
		1: makeInputs(active, withTarget(sentTo), withTarget(complete), noPods, partitioned, now("03:02:00")),
		4: makeInputs(evicting, havingPods("a+", "b+", "c+", "d+"), partitioned, now("03:02:00")),
	} {
		if record := Decide(in).Status.History[0]; record.Pods != want || record.Outcome != tidekeeperv1.OutcomeSucceeded {
			t.Errorf("%s with %d pods, want %d", record.Outcome, record.Pods, want)
		}
	}
}

// TestStoppedStaysStopped checks that a successful requested restart does not resume a schedule
// that was stopped by failures.
func TestStoppedStaysStopped(t *testing.T) {
	in := makeInputs(active, withTarget(sentTo), withTarget(complete), noPods, now("03:02:00"), func(in *Input) {
		in.Restart.Status.Active.Trigger = tidekeeperv1.TriggerRequest
		in.Restart.Status.ConsecutiveFailures, in.Restart.Status.NextScheduleTime = 3, nil
	})
	status := Decide(in).Status
	if ready := meta.FindStatusCondition(status.Conditions, tidekeeperv1.ConditionReady); ready.Reason != tidekeeperv1.ReasonFailureLimit || status.NextScheduleTime != nil {
		t.Errorf("after a successful request it is %s, with the next tick at %v; want that it stays stopped", ready.Reason, status.NextScheduleTime)
	}
}

// TestSlotAge checks that a restart that outlives its slot is still followed, and that the
// condition reports that it takes too long.
func TestSlotAge(t *testing.T) {
	in := makeInputs(active, withTarget(sentTo), now("03:01:00"), func(in *Input) { in.SlotAge = 10 * time.Minute })
	if d := Decide(in); d.Outlived || !d.Wake.Equal(at("03:10:01")) {
		t.Errorf("after a minute: outlived %v, wakes at %s", d.Outlived, d.Wake)
	}
	in.Now = at("03:10:01")
	d := Decide(in)
	ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady)
	if !d.Outlived || !d.Wake.Equal(at("03:30:01")) || d.Status.Active == nil || !strings.Contains(ready.Message, "takes longer than 10m0s") {
		t.Errorf("after ten minutes: outlived %v, wakes at %s, message %q", d.Outlived, d.Wake, ready.Message)
	}
}

// TestHistory checks that the latest entry comes first in the history, and that historyLimit is
// respected.
func TestHistory(t *testing.T) {
	in := makeInputs(now("03:20:00"), withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.HistoryLimit = 2 }))
	for day := range 3 {
		in.Restart.Status.History = append(in.Restart.Status.History, tidekeeperv1.RestartRecord{
			ScheduledTime: metav1.Time{Time: at("03:00:00").AddDate(0, 0, -1-day)}, Outcome: tidekeeperv1.OutcomeSucceeded,
		})
	}
	history := Decide(in).Status.History
	if len(history) != 2 || history[0].Outcome != tidekeeperv1.OutcomeMissed || history[1].Outcome != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("history: %+v, want the missed tick, then the earlier success", history)
	}
}
