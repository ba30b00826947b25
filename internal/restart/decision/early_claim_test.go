// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// tenAhead allows ticks to be claimed within the last ten seconds before they are due.
func tenAhead(in *Input) { in.ClaimAhead = 10 * time.Second }

// claimed changes the input to a restart whose 03:00 tick this process has claimed early.
func claimed(in *Input) {
	in.BeforeClaim = in.Restart.Status.DeepCopy()
	tenAhead(in)
	active(in)
	in.Restart.Status.Active.StartedTime = *metaAt("03:00:00")
}

// TestClaim checks decisions about claiming a tick before it is due.
func TestClaim(t *testing.T) {
	check(t, []row{
		{
			name: "it wakes when the claim may be made", in: makeInputs(tenAhead, now("02:00:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("02:59:50"),
		},
		{
			name: "then the tick is claimed, and not sent", in: makeInputs(tenAhead, now("02:59:50")),
			ready: "True/Restarting", active: true, next: tomorrow, wake: at("03:00:00"),
		},
		{
			name: "the spread counts", in: makeInputs(tenAhead, now("02:59:50"), func(in *Input) { in.Offset = time.Minute }),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:50"),
		},
		{
			name: "what is in its way may be gone when it is due", in: makeInputs(tenAhead, now("02:59:55"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "without a spare slot it is not claimed", in: makeInputs(tenAhead, now("02:59:55"), noSlot),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
		{
			name: "a suspended schedule has nothing to claim", in: makeInputs(tenAhead, now("02:59:55"), edited(suspended)),
			ready: "True/Suspended",
		},
		{
			name: "a request for a time to come is claimed too", in: makeInputs(tenAhead, now("01:59:55"), requestAt("02:00:00")),
			ready: "True/Restarting", active: true, next: at("03:00:00"), wake: at("02:00:00"),
		},
		{
			name: "a request for the time of the tick: one restart serves both then", in: makeInputs(tenAhead, now("02:59:55"), requestAt("03:00:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("03:00:00"),
		},
	})
}

// TestClaimed checks decisions between an early claim and the tick, and when the tick is due.
func TestClaimed(t *testing.T) {
	check(t, []row{
		{
			name: "before it is due it waits", in: makeInputs(claimed, now("02:59:55")),
			ready: "", active: true, next: tomorrow, wake: at("03:00:00"),
		},
		{
			name: "even if something is in its way now", in: makeInputs(claimed, now("02:59:55"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "", active: true, next: tomorrow, wake: at("03:00:00"),
		},
		{
			name: "when it is due it is sent, and the status stays", in: makeInputs(claimed, now("03:00:00")),
			ready: "", active: true, next: tomorrow, send: at("03:00:00"), wake: at("03:30:00"),
		},
		{
			name: "an edit takes it back", in: makeInputs(claimed, now("02:59:55"), edited(suspended)),
			ready: "True/Suspended",
		},
		{
			name: "and if the new spec has the tick, it is claimed again", in: makeInputs(claimed, now("02:59:55"), edited(func(s *tidekeeperv1.ScheduledRestartSpec) { s.FailureLimit = 2 })),
			ready: "True/Restarting", active: true, next: tomorrow, wake: at("03:00:00"),
		},
		{
			name: "a target that is paused when it is due is waited for", in: makeInputs(claimed, now("03:00:00"), withTarget(func(t *workload.State) { t.Paused = true })),
			ready: "True/TargetPaused", next: at("03:00:00"), wake: at("03:15:01"),
		},
		{
			name: "a target that was replaced is restarted if it is there", in: makeInputs(claimed, now("03:00:00"), withTarget(func(t *workload.State) { t.UID = "other" })),
			ready: "True/Restarting", active: true, next: tomorrow, send: at("03:00:00"), wake: at("03:30:00"),
		},
		{
			name:  "a target that another client has restarted is served",
			in:    makeInputs(claimed, now("03:00:01"), withTarget(func(t *workload.State) { t.RestartedAt = formatTime(at("03:00:01")) })),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow.Add(-10 * time.Second), records: []string{"Skipped AlreadyRestarted 03:00:00"},
		},
		{
			name: "after its deadline it is missed", in: makeInputs(claimed, now("03:15:01")),
			ready: "True/Scheduled", next: tomorrow, wake: tomorrow.Add(-10 * time.Second), records: []string{"Missed DeadlineExceeded 03:00:00"},
		},
		{
			name: "a clock that is set back by hours takes it back", in: makeInputs(claimed, now("01:00:00")),
			ready: "True/Scheduled", next: at("03:00:00"), wake: at("02:59:50"),
		},
		{
			name: "a claim of another process waits until it is due, whatever its target", in: makeInputs(claimed, now("02:59:55"), func(in *Input) { in.BeforeClaim, in.Target = nil, nil }),
			ready: "True/Restarting", active: true, next: tomorrow, wake: at("03:00:00"),
		},
		{
			name: "and then the API server knows whether it was sent", in: makeInputs(claimed, now("03:00:00"), func(in *Input) { in.BeforeClaim = nil }),
			ready: "True/Restarting", active: true, next: tomorrow, live: true,
		},
	})
}

// TestClaimLeavesNoTrace checks that the status after a claim was taken back is the same as if the
// claim had never been made.
func TestClaimLeavesNoTrace(t *testing.T) {
	in := makeInputs(tenAhead, now("02:59:55"), requestAt("02:59:58"), func(in *Input) {
		in.Restart.Status.LastRequestTime, in.Restart.Status.LastScheduleTime = metaAt("01:00:00"), metaAt("01:00:00")
	})
	d := Decide(in)
	if d.Status.Active == nil || d.BeforeClaim == nil {
		t.Fatalf("the request is not claimed: %+v", d.Status)
	}
	in.Restart.Status, in.BeforeClaim = d.Status, d.BeforeClaim
	in.Restart.Annotations = nil
	withoutClaim := makeInputs(now("02:59:55"), func(in *Input) {
		in.Restart.Status.LastRequestTime, in.Restart.Status.LastScheduleTime = metaAt("01:00:00"), metaAt("01:00:00")
	})
	// If no slot is free, the next tick must not be claimed instead.
	noSlot(&in)
	if diff := cmp.Diff(Decide(withoutClaim).Status, Decide(in).Status); diff != "" {
		t.Errorf("after the request was withdrawn (-never claimed +taken back):\n%s", diff)
	}
}
