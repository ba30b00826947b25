// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// queried marks the administrator's queries as configured.
func queried(in *Input) { in.Queried = true }

// answered sets the last answer of the queries and its time. If closed is empty, no query returned
// results.
func answered(clock, closed string) func(*Input) {
	return func(in *Input) { in.Queried, in.Answer = true, &Answer{At: at(clock), Closed: closed} }
}

func TestQueries(t *testing.T) {
	const closed = `closed by query alerts: ALERTS{alertname="Down"}`
	const waits = "ClosedByQuery: a restart is due and waits until 2026-06-10T03:15:00Z: " + closed
	// does is the part of a decision that the tests compare.
	type does struct {
		needs Need
		sends bool
		ready string
		wake  time.Time
	}
	const restarting = "Restarting: restarting Deployment web for the tick of 2026-06-10T03:00:00Z"
	asks := does{needs: NeedAnswer, sends: true, ready: restarting, wake: at("03:30:01")}
	sends := does{sends: true, ready: restarting, wake: at("03:30:01")}
	for _, tc := range []struct {
		name string
		in   Input
		want does
	}{
		{"nothing is asked where there are no queries", makeInputs(), sends},
		{"they are asked before a tick is sent", makeInputs(queried), asks},
		{"before the API server is asked for freezes", makeInputs(queried, fromCache), asks},
		{"and it is asked then", makeInputs(answered("03:00:01", ""), fromCache), does{needs: NeedLiveFreezes, sends: true, ready: restarting, wake: at("03:30:01")}},
		{"nothing is against it", makeInputs(answered("03:00:01", "")), sends},
		{"an answer that is too old", makeInputs(answered("02:59:51", "")), asks},
		{"an answer of a clock that was ahead", makeInputs(answered("03:00:02", "")), asks},
		{"a result", makeInputs(answered("03:00:01", closed)), does{ready: waits, wake: at("03:00:11")}},
		{"it still counts", makeInputs(answered("02:59:52", closed)), does{ready: waits, wake: at("03:00:02")}},
		{"asked again", makeInputs(answered("02:59:51", closed)), asks},
		{"asked again when it has a slot", makeInputs(answered("03:00:30", closed), noSlot, now("03:01:00")), does{needs: NeedSlot, ready: waits, wake: at("03:15:01")}},
		{"not asked without a slot", makeInputs(queried, noSlot), does{needs: NeedSlot, ready: "BudgetExhausted: a restart is due and waits until 2026-06-10T03:15:00Z: the restart budget is used up", wake: at("03:15:01")}},
		{
			"not asked while the workload is not ready", makeInputs(queried, withTarget(func(t *workload.State) { t.Paused = true })),
			does{ready: "TargetPaused: a restart is due and waits until 2026-06-10T03:15:00Z: Deployment web is paused", wake: at("03:15:01")},
		},
		{"not asked at rest", makeInputs(queried, now("02:00:00")), does{ready: "Scheduled: next restart at 2026-06-10T03:00:00Z", wake: at("03:00:00")}},
		{"one that was claimed ahead", makeInputs(claimed, queried, now("03:00:00")), does{needs: NeedAnswer, sends: true, wake: at("03:30:00")}},
		{"its claim is taken back", makeInputs(claimed, answered("03:00:00", closed), now("03:00:00")), does{ready: waits, wake: at("03:00:10")}},
		{"one that was started and not sent", makeInputs(active, unsent, queried), does{needs: NeedAnswer, sends: true, ready: restarting}},
		{"it waits, too", makeInputs(active, unsent, answered("03:00:01", closed)), does{ready: waits, wake: at("03:00:11")}},
		{"a restart in progress goes on", makeInputs(active, withTarget(sentTo), answered("03:00:01", closed)), does{ready: restarting, wake: at("03:30:01")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.in)
			got := does{needs: d.Needs, sends: !d.Send.IsZero(), wake: d.Wake}
			if ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil {
				got.ready = ready.Reason + ": " + ready.Message
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(does{})); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestQueriesBeforeAnEviction checks that the queries are also run before a restart by eviction
// starts.
func TestQueriesBeforeAnEviction(t *testing.T) {
	if d := Decide(makeInputs(byEviction, queried)); d.Needs != NeedAnswer || d.Status.Active != nil {
		t.Errorf("it needs %d, and has begun: %+v", d.Needs, d.Status.Active)
	}
	if d := Decide(makeInputs(byEviction, answered("03:00:01", ""))); d.Needs != NeedPods {
		t.Errorf("nothing is against it, and it needs %d, want %d", d.Needs, NeedPods)
	}
	d := Decide(makeInputs(byEviction, answered("03:00:01", "closed by query alerts: Down")))
	if ready := meta.FindStatusCondition(d.Status.Conditions, tidekeeperv1.ConditionReady); d.Needs != NeedNothing || ready.Reason != tidekeeperv1.ReasonClosedByQuery {
		t.Errorf("it needs %d, and is %+v", d.Needs, ready)
	}
}

func TestMissedForAQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want string
	}{
		"its words, although they do not count any more": {
			makeInputs(now("03:15:01"), answered("03:14:00", "closed by query alerts: Down")), "not started before the deadline: closed by query alerts: Down",
		},
		"an answer of the day before says nothing": {
			makeInputs(now("03:20:00"), waited(tidekeeperv1.ReasonBudgetExhausted), func(in *Input) {
				in.Queried, in.Answer = true, &Answer{At: at("03:00:00").AddDate(0, 0, -1), Closed: "closed by query alerts: Down"}
			}), "not started before the deadline: the restart budget was used up",
		},
		"another manager had the answer": {
			makeInputs(now("03:20:00"), queried, waited(tidekeeperv1.ReasonClosedByQuery)), "not started before the deadline: closed by a query of the manager's operator",
		},
	} {
		d := Decide(tc.in)
		if len(d.Records) != 1 || d.Records[0].Outcome != tidekeeperv1.OutcomeMissed || d.Records[0].Message != tc.want ||
			(d.Records[0].Reason == tidekeeperv1.ReasonClosedByQuery) == strings.Contains(tc.want, "budget") {
			t.Errorf("%s: recorded %+v, want %q", name, d.Records, tc.want)
		}
	}
}

func TestGateOfQueries(t *testing.T) {
	gate := func(in Input) Gate {
		gates := Gates(in)
		return gates[slices.IndexFunc(gates, func(g Gate) bool { return g.Name == GateQuery })]
	}
	if g := gate(makeInputs(queried)); g.Name != GateQuery || !g.Open || !strings.HasPrefix(g.Message, "nothing is known against it") {
		t.Errorf("the gate is %+v", g)
	}
	in := makeInputs()
	in.Restart.Status = Decide(makeInputs(answered("03:00:01", "closed by query alerts: Down"))).Status
	if g := gate(in); g.Open || g.Reason != tidekeeperv1.ReasonClosedByQuery || !strings.HasSuffix(g.Message, ": closed by query alerts: Down") {
		t.Errorf("the gate is %+v", g)
	}
}
