// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestWaiting checks decisions before a tick is due.
func TestWaiting(t *testing.T) {
	check(t, []row{
		{
			name: "before the tick it waits", in: makeInputs(now("02:00:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "a new object counts from its creation, even if no manager saw it before the tick",
			in:   makeInputs(func(in *Input) { in.Restart.Status = tidekeeperv1.ScheduledRestartStatus{} }),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "the spread delays the start, not the tick", in: makeInputs(func(in *Input) { in.Offset = 5 * time.Minute }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:05:00"),
		},
		{
			name: "after the spread it starts the tick", in: makeInputs(now("03:05:00"), func(in *Input) { in.Offset = 5 * time.Minute }),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:35:00"),
		},
	})
}

// TestStart checks decisions when a tick is due.
func TestStart(t *testing.T) {
	check(t, []row{
		{
			name: "a due tick is started and sent", in: makeInputs(),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "without a slot it waits for one", in: makeInputs(noSlot),
			ready: "True/BudgetExhausted", next: at("03:00:00"), slot: true, wake: at("03:15:01"),
		},
		{
			name: "a paused target is waited for", in: makeInputs(withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/TargetPaused", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a target that is being rolled out is waited for", in: makeInputs(withTarget(func(t *workload.State) { t.Rollout = workload.Progress{Updating: true} })),
			ready: "True/TargetRolling", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "an unhealthy target is waited for", in: makeInputs(withTarget(func(t *workload.State) { t.Rollout.Available = false })),
			ready: "True/TargetUnhealthy", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a rollout that is stuck is unhealthy", in: makeInputs(withTarget(func(t *workload.State) { t.Rollout = workload.Progress{Updating: true, Exceeded: true} })),
			ready: "True/TargetUnhealthy", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "without a precondition an unhealthy target is restarted",
			in: makeInputs(withTarget(func(t *workload.State) { t.Rollout = workload.Progress{Updating: true, Exceeded: true} }),
				withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "without a precondition a target that is being rolled out is still waited for",
			in: makeInputs(withTarget(func(t *workload.State) { t.Rollout = workload.Progress{Updating: true} }),
				withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })),
			ready: "True/TargetRolling", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a target whose update was aborted is unhealthy", in: makeInputs(withTarget(func(t *workload.State) { t.Rollout.Halted = "its update was aborted" })),
			ready: "True/TargetUnhealthy", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "without a precondition it is restarted",
			in: makeInputs(withTarget(func(t *workload.State) { t.Rollout.Halted = "its update was aborted" }),
				withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Precondition = tidekeeperv1.PreconditionNone })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "a target that does not exist is waited for", in: makeInputs(func(in *Input) { in.Target = nil }),
			ready: "False/TargetNotFound", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a StatefulSet without a pod above its partition replaces no pods: skipped", in: makeInputs(withTarget(func(t *workload.State) { t.Partitioned = true })),
			ready: "False/StrategyPartition", next: tomorrow, wake: tomorrow, records: []string{"Skipped StrategyPartition 03:00:00"},
		},
		{
			name:  "a restart with a clock that is minutes ahead serves the tick",
			in:    makeInputs(withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("03:04:00")) })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Skipped AlreadyRestarted 03:00:00"},
		},
		{
			name: "OnDelete replaces no pods: skipped", in: makeInputs(withTarget(func(t *workload.State) { t.OnDelete = true })),
			ready: "False/StrategyOnDelete", next: tomorrow, wake: tomorrow, records: []string{"Skipped StrategyOnDelete 03:00:00"},
		},
		{
			name:  "a target that another client restarted after the tick is served",
			in:    makeInputs(now("03:10:00"), withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("03:05:00")) })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow, records: []string{"Skipped AlreadyRestarted 03:00:00"},
		},
		{
			name: "a restart before the tick serves nothing", in: makeInputs(withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("02:59:59")) })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "a restart in the future serves nothing", in: makeInputs(withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("04:00:00")) })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
		{
			name: "a value that is not a time serves nothing", in: makeInputs(withTarget(func(t *workload.State) { t.RestartedAt = "just now" })),
			send: at("03:00:00"), active: true, ready: "True/Restarting", next: tomorrow, wake: at("03:30:01"),
		},
	})
}

// TestWaitsSince checks the time since which a restart waits for a slot. The time in a restart
// request must not improve the restart's place in the queue.
func TestWaitsSince(t *testing.T) {
	if d := Decide(makeInputs(noSlot, now("02:10:00"), requestAt("02:00:00"))); d.Needs != NeedSlot || !d.WaitingSince.Equal(at("02:10:00")) {
		t.Errorf("a request for ten minutes ago waits since %s, want now", d.WaitingSince)
	}
	if d := Decide(makeInputs(noSlot)); !d.WaitingSince.Equal(at("03:00:00")) {
		t.Errorf("a tick waits since %s, want when it was due", d.WaitingSince)
	}
	served := makeInputs(noSlot, now("03:05:00"), func(in *Input) {
		in.Restart.Status.History = []tidekeeperv1.RestartRecord{{CompletedTime: *metaAt("03:04:00")}}
	})
	if d := Decide(served); !d.WaitingSince.Equal(at("03:04:00")) {
		t.Errorf("an object that was served a minute ago waits since %s", d.WaitingSince)
	}
}
