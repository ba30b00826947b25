// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// frozen adds a freeze between the given times.
func frozen(from, until string) func(*Input) {
	return func(in *Input) {
		in.Freezes = append(in.Freezes, period.Period{Name: "q4", Reason: "the books are closed", From: at(from), Until: at(until)})
	}
}

// fromCache marks the freezes as read from the cache, and not from the API server.
func fromCache(in *Input) { in.FreezesLive = false }

// waited sets the reason of the condition Ready to a reason for which a tick waits.
func waited(reason string) func(*Input) {
	return func(in *Input) {
		in.Restart.Status.Conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason}}
	}
}

func TestFreezes(t *testing.T) {
	const waits = "a restart is due and waits for Freeze q4 until 2026-06-10T05:00:00Z: the books are closed; its deadline is before that, at 2026-06-10T03:15:00Z"
	const restarting, scheduled = "restarting Deployment web for the tick of 2026-06-10T03:00:00Z", "next restart at 2026-06-11T03:00:00Z"
	for _, tc := range []struct {
		name string
		in   Input
		send bool
		// reason and message are the expected reason and message of the condition Ready. wake is
		// the expected time of the next decision.
		reason, message string
		wake            time.Time
		record          string
		needs           Need
	}{
		{
			name: "it waits", in: makeInputs(frozen("02:00:00", "05:00:00")),
			reason: "Frozen", message: waits, wake: at("03:15:01"),
		},
		{
			name: "before its deadline it is decided again when the freeze ends", in: makeInputs(frozen("02:00:00", "03:10:00")),
			reason: "Frozen", message: "a restart is due and waits for Freeze q4 until 2026-06-10T03:10:00Z: the books are closed", wake: at("03:10:00"),
		},
		{
			name: "and is started then", in: makeInputs(frozen("02:00:00", "03:10:00"), now("03:10:00"), waited("Frozen")),
			send: true, reason: "Restarting", message: restarting, wake: at("03:40:00"),
		},
		{
			name: "and waits for a slot then", in: makeInputs(frozen("02:00:00", "03:10:00"), now("03:10:00"), noSlot), needs: NeedSlot,
			reason: "BudgetExhausted", message: "a restart is due and waits until 2026-06-10T03:15:00Z: the restart budget is used up", wake: at("03:15:01"),
		},
		{
			name: "it has not begun", in: makeInputs(frozen("03:00:02", "05:00:00")),
			send: true, reason: "Restarting", message: restarting, wake: at("03:30:01"),
		},
		{
			name: "of several, the one that ends last", in: makeInputs(frozen("02:00:00", "03:05:00"), frozen("02:00:00", "05:00:00"), frozen("02:00:00", "04:00:00")),
			reason: "Frozen", message: waits, wake: at("03:15:01"),
		},
		{
			name: "its deadline passes", in: makeInputs(frozen("02:00:00", "05:00:00"), now("03:15:01")),
			reason: "Scheduled", message: scheduled, wake: tomorrow,
			record: "Missed Frozen not started before the deadline: Freeze q4 until 2026-06-10T05:00:00Z: the books are closed",
		},
		{
			name: "its deadline passed before anyone looked", in: makeInputs(now("03:20:00"), waited("Frozen")),
			reason: "Scheduled", message: scheduled, wake: tomorrow,
			record: "Missed Frozen not started before the deadline: a Freeze was in force",
		},
		{
			name: "a request waits as well", in: makeInputs(frozen("01:00:00", "05:00:00"), now("02:00:00"), requestAt("01:59:00")),
			reason: "Frozen", message: "a restart is due and waits for Freeze q4 until 2026-06-10T05:00:00Z: the books are closed; its deadline is before that, at 2026-06-10T02:14:00Z",
			wake: at("02:14:01"),
		},
		{
			name: "whatever the workload waits for", in: makeInputs(frozen("02:00:00", "05:00:00"), withTarget(func(t *workload.State) { t.Paused = true })),
			reason: "Frozen", message: waits, wake: at("03:15:01"),
		},
		{
			name: "without a workload there is nothing to hold back", in: makeInputs(frozen("02:00:00", "05:00:00"), func(in *Input) { in.Target = nil }),
			reason: "TargetNotFound", message: "there is no Deployment web in this namespace", wake: at("03:15:01"),
		},
		{
			name: "a restart in progress goes on", in: makeInputs(frozen("02:00:00", "05:00:00"), active, withTarget(sentTo)),
			reason: "Restarting", message: restarting, wake: at("03:30:01"),
		},
		{
			name: "one that was started and not sent waits", in: makeInputs(frozen("02:00:00", "05:00:00"), active, unsent),
			reason: "Frozen", message: waits, wake: at("03:15:01"),
		},
		{
			name: "the API server is asked before a tick is sent", in: makeInputs(fromCache), send: true, needs: NeedLiveFreezes,
			reason: "Restarting", message: restarting, wake: at("03:30:01"),
		},
		{
			name: "also if it was started before", in: makeInputs(fromCache, active, unsent), send: true, needs: NeedLiveFreezes,
			reason: "Restarting", message: restarting,
		},
		{
			name: "also if it was claimed ahead", in: makeInputs(claimed, fromCache, now("03:00:00")), send: true, needs: NeedLiveFreezes,
			wake: at("03:30:00"),
		},
		{
			name: "a claim is taken back", in: makeInputs(claimed, frozen("02:00:00", "05:00:00"), now("03:00:00")),
			reason: "Frozen", message: waits, wake: at("03:15:01"),
		},
		{
			name: "nothing is claimed for a time at which it is frozen", in: makeInputs(tenAhead, frozen("03:00:00", "05:00:00"), now("02:59:55")),
			reason: "Scheduled", message: "next restart at 2026-06-10T03:00:00Z", wake: at("03:00:00"),
		},
		{
			name: "what is due when it has ended is claimed", in: makeInputs(tenAhead, frozen("01:00:00", "03:00:00"), now("02:59:55")),
			reason: "Restarting", message: restarting, wake: at("03:00:00"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.in)
			record := ""
			for _, r := range d.Records {
				record += fmt.Sprintf("%s %s %s", r.Outcome, r.Reason, r.Message)
			}
			if record != tc.record {
				t.Errorf("recorded %q, want %q", record, tc.record)
			}
			ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady)
			if ready == nil {
				ready = &metav1.Condition{}
			}
			if ready.Reason != tc.reason || ready.Message != tc.message {
				t.Errorf("%s: %s\nwant %s: %s", ready.Reason, ready.Message, tc.reason, tc.message)
			}
			if sends := !d.Send.IsZero(); sends != tc.send || d.Needs != tc.needs || !d.Wake.Equal(tc.wake) {
				t.Errorf("sends: %t, needs %d, wakes at %s; want %t, %d, %s", sends, d.Needs, d.Wake, tc.send, tc.needs, tc.wake)
			}
		})
	}
}

// TestAFreezeIsNotOverdue checks that a tick that was missed during a freeze does not make the
// schedule overdue.
func TestAFreezeIsNotOverdue(t *testing.T) {
	in := makeInputs(frozen("02:00:00", "05:00:00"), now("03:15:01"))
	d := Decide(in)
	if first := FirstUnserved(&in.Restart.Spec, &d.Status, in.InWindows()); !first.Equal(tomorrow) {
		t.Errorf("the first tick that is owed is %s, want %s", first, tomorrow)
	}
}
