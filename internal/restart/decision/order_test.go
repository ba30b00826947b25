// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// first adds the predecessor db. It has no due restart until tomorrow, unless the given changes of
// its status add one.
func first(changes ...func(*tidekeeperv1.ScheduledRestartStatus)) func(*Input) {
	return func(in *Input) {
		in.Restart.Spec.After = append(in.Restart.Spec.After, "db")
		other := &tidekeeperv1.ScheduledRestart{
			ObjectMeta: metav1.ObjectMeta{Name: "db", Generation: 1},
			Status:     tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1, NextScheduleTime: &metav1.Time{Time: tomorrow}},
		}
		for _, change := range changes {
			change(&other.Status)
		}
		in.After = append(in.After, Predecessor{Name: "db", Restart: other})
	}
}

// had adds a past tick to the history of the predecessor.
func had(tick string, outcome tidekeeperv1.Outcome) func(*tidekeeperv1.ScheduledRestartStatus) {
	return func(s *tidekeeperv1.ScheduledRestartStatus) {
		record := tidekeeperv1.RestartRecord{ScheduledTime: *metaAt(tick), Outcome: outcome}
		if outcome == tidekeeperv1.OutcomeFailed || outcome == tidekeeperv1.OutcomeSucceeded {
			record.StartedTime = metaAt(tick)
		}
		s.History = append(s.History, record)
	}
}

func dueAt(tick string) func(*tidekeeperv1.ScheduledRestartStatus) {
	return func(s *tidekeeperv1.ScheduledRestartStatus) { s.NextScheduleTime = metaAt(tick) }
}

func restarting(tick string) func(*tidekeeperv1.ScheduledRestartStatus) {
	return func(s *tidekeeperv1.ScheduledRestartStatus) {
		s.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: *metaAt(tick)}
	}
}

func TestOrder(t *testing.T) {
	const waits, failed, missing = "it comes after db, which is due and has not started", "it comes after db, whose restart for the tick of 2026-06-10T03:00:00Z has failed", "it comes after db, which does not exist"
	gone := func(in *Input) { in.After[0].Restart = nil }
	for _, tc := range []struct {
		name string
		in   Input
		// reason and message are the expected reason and message of the condition Ready. Both are
		// empty if a tick is sent.
		reason, message string
		record          string
	}{
		{name: "it is at rest", in: makeInputs(first())},
		{name: "it is due at the same time", in: makeInputs(first(dueAt("03:00:00"))), reason: "OutOfOrder", message: waits},
		{name: "it was due earlier", in: makeInputs(first(dueAt("01:00:00"))), reason: "OutOfOrder", message: waits},
		{name: "it is due later", in: makeInputs(first(dueAt("03:00:01")))},
		{
			name: "the place in its spread is later", in: makeInputs(first(dueAt("03:00:00"), func(s *tidekeeperv1.ScheduledRestartStatus) { s.NextStartTime = metaAt("03:00:30") })),
		},
		{name: "our place in the spread is later", in: makeInputs(first(dueAt("03:00:20")), now("03:00:30"), func(in *Input) { in.Offset = 30 * time.Second }), reason: "OutOfOrder", message: waits},
		{name: "it is being restarted", in: makeInputs(first(restarting("03:00:00"))), reason: "OutOfOrder", message: "it comes after db, which is being restarted"},
		{name: "it is being restarted for a later time", in: makeInputs(first(restarting("03:00:01")))},
		{name: "it has succeeded", in: makeInputs(first(had("03:00:00", "Succeeded")))},
		{name: "it has failed", in: makeInputs(first(had("03:00:00", "Failed"))), reason: "PredecessorFailed", message: failed},
		{name: "it has failed, and was restarted again", in: makeInputs(first(had("03:00:00", "Succeeded"), had("02:00:00", "Failed")))},
		{name: "it has succeeded, and failed later", in: makeInputs(first(had("03:00:01", "Failed"), had("03:00:00", "Succeeded")))},
		{name: "it has missed its tick", in: makeInputs(first(had("03:00:00", "Missed"), had("02:00:00", "Succeeded")))},
		{name: "it has failed before a tick that it missed", in: makeInputs(first(had("03:00:30", "Missed"), had("03:00:00", "Failed"))), reason: "PredecessorFailed", message: failed},
		{name: "it does not exist", in: makeInputs(first(), gone), reason: "PredecessorNotFound", message: missing},
		{
			name: "one of two is not ready", in: makeInputs(first(), first(dueAt("03:00:00"))), reason: "OutOfOrder", message: waits,
		},
		{
			name: "its deadline passes", in: makeInputs(first(dueAt("03:00:00")), now("03:15:01")),
			record: "Missed OutOfOrder not started before the deadline: " + waits,
		},
		{
			name: "a failed one makes it missed", in: makeInputs(first(had("03:00:00", "Failed")), now("03:15:01")),
			record: "Missed PredecessorFailed not started before the deadline: " + failed,
		},
		{
			name: "one that does not exist does not block forever", in: makeInputs(first(), gone, now("03:15:01")),
			record: "Missed PredecessorNotFound not started before the deadline: " + missing,
		},
		{
			name: "a cycle is skipped", in: makeInputs(first(), func(in *Input) { in.Cycle = []string{"web", "db", "web"} }),
			reason: "OrderCycle", message: "by spec.after these come after each other, and none can be first: web after db after web",
			record: "Skipped OrderCycle by spec.after these come after each other, and none can be first: web after db after web",
		},
		{name: "a request waits as well", in: makeInputs(first(dueAt("01:59:00")), now("02:00:00"), requestAt("01:59:00")), reason: "OutOfOrder", message: waits},
		{name: "a request from before is not due", in: makeInputs(first(dueAt("01:59:01")), now("02:00:00"), requestAt("01:59:00"))},
		{
			name: "a request of the other one", in: makeInputs(first(), func(in *Input) {
				in.After[0].Restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "2026-06-10T02:59:59Z"}
			}), reason: "OutOfOrder", message: waits,
		},
		{
			name: "a request of the other one that was decided", in: makeInputs(first(func(s *tidekeeperv1.ScheduledRestartStatus) { s.LastRequestTime = metaAt("02:59:59") }), func(in *Input) {
				in.After[0].Restart.Annotations = map[string]string{tidekeeperv1.RestartNowAnnotation: "2026-06-10T02:59:59Z"}
			}),
		},
		{
			name: "an edit of the other one that was not looked at", in: makeInputs(first(func(s *tidekeeperv1.ScheduledRestartStatus) { s.ObservedGeneration = 0 })),
			reason: "OutOfOrder", message: "it comes after db, whose spec has changed just now",
		},
		{name: "what was started and not sent waits", in: makeInputs(first(dueAt("03:00:00")), active, unsent), reason: "OutOfOrder", message: waits},
		{name: "a claim is taken back", in: makeInputs(claimed, first(dueAt("03:00:00")), now("03:00:00")), reason: "OutOfOrder", message: waits},
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
			if sends := !d.Send.IsZero(); sends != (tc.reason == "" && tc.record == "") {
				t.Errorf("sends: %t", sends)
			}
			ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady)
			if tc.reason != "" && (ready.Reason != tc.reason || !strings.HasSuffix(ready.Message, tc.message)) {
				t.Errorf("%s: %s\nwant %s: %s", ready.Reason, ready.Message, tc.reason, tc.message)
			}
		})
	}
}

// TestOrderIsSaidBefore checks that a missing predecessor or a cycle is reported before a restart
// is due.
func TestOrderIsSaidBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want string
	}{
		"missing": {makeInputs(first(), now("01:00:00"), func(in *Input) { in.After[0].Restart = nil }), "True/Scheduled: next restart at 2026-06-10T03:00:00Z; it comes after db, which does not exist, and is missed without it"},
		"cycle":   {makeInputs(first(), now("01:00:00"), func(in *Input) { in.Cycle = []string{"web", "web"} }), "False/OrderCycle: by spec.after these come after each other, and none can be first: web after web"},
	} {
		ready := meta.FindStatusCondition(Decide(tc.in).Status.Conditions, tidekeeperv1.ConditionReady)
		if got := fmt.Sprintf("%s/%s: %s", ready.Status, ready.Reason, ready.Message); got != tc.want {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestFindCycle(t *testing.T) {
	var long []string
	edges := map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d", "a"}, "d": {"e"}, "e": {"d"}, "self": {"self"}, "far": {"step-0"}}
	for i := range 5000 {
		edges[fmt.Sprint("step-", i)] = []string{fmt.Sprint("step-", i+1)}
	}
	for name, want := range map[string][]string{
		"a": {"a", "c", "a"}, "b": nil, "c": {"c", "a", "c"}, "d": {"d", "e", "d"}, "self": {"self", "self"}, "none": nil, "far": long,
	} {
		got, err := FindCycle(name, func(name string) ([]string, error) { return edges[name], nil })
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("from %s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	broken := errors.New("it cannot be read")
	if _, err := FindCycle("a", func(string) ([]string, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("an error: %v", err)
	}
}
