// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// window returns a window that is open from 02:00 to 04:00 each day.
func window() schedule.Windows {
	opens, err := schedule.Parse("0 2 * * *", "UTC")
	if err != nil {
		panic(err)
	}
	return schedule.Windows{{Opens: opens, Length: 2 * time.Hour}}
}

// tookFor returns a history with a successful restart of the given duration.
func tookFor(length time.Duration) *history {
	return &history{past: []tidekeeperv1.RestartRecord{{
		Outcome: tidekeeperv1.OutcomeSucceeded, StartedTime: metaAt("00:00:00"), CompletedTime: metav1.Time{Time: at("00:00:00").Add(length)},
	}}}
}

// TestEachGate checks the reasons for which each gate is closed.
func TestEachGate(t *testing.T) {
	healthy := workload.State{Kind: "Deployment", Name: "web", Rollout: workload.Progress{Available: true}, Availability: workload.Progress{Available: true}}
	state := func(change func(*workload.State)) *workload.State {
		s := healthy
		change(&s)
		return &s
	}
	predecessor := func(change func(*tidekeeperv1.ScheduledRestart)) *orderGate {
		p := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Name: "db", Generation: 1}}
		p.Status.ObservedGeneration = 1
		change(p)
		return &orderGate{names: []string{"db"}, predecessors: []Predecessor{{Name: "db", Restart: p}}, now: at("03:00:01")}
	}
	q4 := []period.Period{{Name: "q4", From: at("02:00:00"), Until: at("05:00:00")}}
	for _, tt := range []struct {
		name string
		gate gate
		at   string
		want string // reason of the blocker; "" if the gate is open
	}{
		{"target: none", &targetGate{}, "03:00:00", tidekeeperv1.ReasonTargetNotFound},
		{"target: deleted", &targetGate{target: state(func(s *workload.State) { s.Deleting = true }), evicts: true}, "03:00:00", tidekeeperv1.ReasonTargetNotFound},
		{"target: OnDelete", &targetGate{target: state(func(s *workload.State) { s.OnDelete = true })}, "03:00:00", tidekeeperv1.ReasonStrategyOnDelete},
		{"target: partitioned", &targetGate{target: state(func(s *workload.State) { s.Partitioned = true })}, "03:00:00", tidekeeperv1.ReasonStrategyPartition},
		{"target: OnDelete, evicted", &targetGate{target: state(func(s *workload.State) { s.OnDelete = true }), evicts: true}, "03:00:00", ""},

		{"freeze: none", &freezeGate{}, "03:00:00", ""},
		{"freeze: in force", &freezeGate{freezes: q4}, "03:00:00", tidekeeperv1.ReasonFrozen},
		{"freeze: over", &freezeGate{freezes: q4}, "05:00:00", ""},

		{"window: none", &windowGate{}, "05:00:00", ""},
		{"window: open", &windowGate{windows: window(), history: &history{}}, "03:00:00", ""},
		{"window: closed", &windowGate{windows: window(), history: &history{}}, "05:00:00", tidekeeperv1.ReasonWindowClosed},
		{"window: long enough", &windowGate{windows: window(), history: tookFor(time.Hour)}, "03:00:00", ""},
		{"window: too short", &windowGate{windows: window(), history: tookFor(time.Hour)}, "03:00:01", tidekeeperv1.ReasonWindowClosed},
		{"window: invalid", &windowGate{wanted: true, invalid: errors.New("no hour 25")}, "03:00:00", tidekeeperv1.ReasonInvalidSchedule},
		{"window: the schedule is invalid, and there are no windows", &windowGate{invalid: errors.New("no hour 25")}, "03:00:00", ""},

		{"order: comes after none", &orderGate{}, "03:00:01", ""},
		{"order: first has nothing to do", predecessor(func(*tidekeeperv1.ScheduledRestart) {}), "03:00:01", ""},
		{"order: first is due", predecessor(func(p *tidekeeperv1.ScheduledRestart) { p.Status.NextScheduleTime = metaAt("03:00:00") }), "03:00:01", tidekeeperv1.ReasonOutOfOrder},
		{"order: first is due later", predecessor(func(p *tidekeeperv1.ScheduledRestart) { p.Status.NextScheduleTime = metaAt("03:00:01") }), "03:00:01", ""},
		{"order: first does not exist", &orderGate{names: []string{"db"}, predecessors: []Predecessor{{Name: "db"}}}, "03:00:01", tidekeeperv1.ReasonPredecessorNotFound},
		{"order: a cycle", &orderGate{names: []string{"db"}, cycle: []string{"web", "db", "web"}}, "03:00:01", tidekeeperv1.ReasonOrderCycle},

		{"health: no workload, which another gate says", &healthGate{}, "03:00:00", ""},
		{"health: healthy", &healthGate{target: &healthy}, "03:00:00", ""},
		{"health: paused", &healthGate{target: state(func(s *workload.State) { s.Paused = true }), precondition: tidekeeperv1.PreconditionNone}, "03:00:00", tidekeeperv1.ReasonTargetPaused},
		{"health: rolling", &healthGate{target: state(func(s *workload.State) { s.Rollout.Updating = true }), precondition: tidekeeperv1.PreconditionNone}, "03:00:00", tidekeeperv1.ReasonTargetRolling},
		{"health: unavailable", &healthGate{target: state(func(s *workload.State) { s.Rollout.Available = false })}, "03:00:00", tidekeeperv1.ReasonTargetUnhealthy},
		{"health: unavailable, which does not matter", &healthGate{target: state(func(s *workload.State) { s.Rollout.Available = false }), precondition: tidekeeperv1.PreconditionNone}, "03:00:00", ""},
		{"health: new pods would not start", &healthGate{target: &healthy, missing: "Secret a does not exist"}, "03:00:00", tidekeeperv1.ReasonTargetUnhealthy},
		{"health: new pods would not start, which does not matter", &healthGate{target: &healthy, missing: "Secret a does not exist", precondition: tidekeeperv1.PreconditionNone}, "03:00:00", ""},
		{"health: old pods of OnDelete", &healthGate{target: state(func(s *workload.State) { s.OnDelete, s.Rollout.Updating = true, true })}, "03:00:00", tidekeeperv1.ReasonTargetRolling},
		{"health: old pods of OnDelete, evicted", &healthGate{target: state(func(s *workload.State) { s.OnDelete, s.Rollout.Updating = true, true }), evicts: true}, "03:00:00", ""},

		{"query: never asked", &queryGate{queried: true}, "03:00:00", ""},
		{"query: closed", &queryGate{answer: &Answer{At: at("03:00:00"), Closed: "errors"}, now: at("03:00:09")}, "03:00:09", tidekeeperv1.ReasonClosedByQuery},
		{"query: an old answer", &queryGate{answer: &Answer{At: at("03:00:00"), Closed: "errors"}, now: at("03:00:10")}, "03:00:10", ""},
		{"query: an answer of the future", &queryGate{answer: &Answer{At: at("03:00:01"), Closed: "errors"}, now: at("03:00:00")}, "03:00:00", ""},

		{"progress: none", &progressGate{}, "03:00:00", ""},
		{"progress: a restart", &progressGate{&tidekeeperv1.ActiveRestart{}}, "03:00:00", tidekeeperv1.ReasonRestarting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if b := tt.gate.blocks(at(tt.at), at("03:00:00")); b != nil {
				got = b.reason
			}
			if got != tt.want {
				t.Errorf("it is closed for %q, want %q", got, tt.want)
			}
		})
	}
}

// TestFirstGate checks that the reported reason comes from the first closed gate.
func TestFirstGate(t *testing.T) {
	open, paused, closed := &freezeGate{}, &healthGate{target: &workload.State{Paused: true}}, &windowGate{windows: window(), history: &history{}}
	for _, tt := range []struct {
		gates gates
		want  string
	}{
		{nil, ""},
		{gates{open}, ""},
		{gates{open, closed, paused}, tidekeeperv1.ReasonWindowClosed},
		{gates{open, paused, closed}, tidekeeperv1.ReasonTargetPaused},
	} {
		if b := tt.gates.first(at("05:00:00"), at("05:00:00")); (b == nil) != (tt.want == "") || b != nil && b.reason != tt.want {
			t.Errorf("the first blocker is %+v, want %q", b, tt.want)
		}
	}
}

// TestRolling checks that a rollout of the target is reported only if no earlier gate is closed.
func TestRolling(t *testing.T) {
	rolling := &workload.State{Kind: "Deployment", Name: "web", Rollout: workload.Progress{Updating: true}}
	for _, tt := range []struct {
		name   string
		change func(*Input)
		want   bool
	}{
		{"rolling", func(*Input) {}, true},
		{"not rolling", func(in *Input) { in.Target = &workload.State{} }, false},
		{"no workload", func(in *Input) { in.Target = nil }, false},
		{"rolling, and frozen", func(in *Input) {
			in.Freezes = []period.Period{{Name: "q4", From: at("02:00:00"), Until: at("05:00:00")}}
		}, false},
		{"rolling, and comes after none that is there", func(in *Input) {
			in.Restart.Spec.After, in.After = []string{"db"}, []Predecessor{{Name: "db"}}
		}, false},
	} {
		in := Input{Restart: &tidekeeperv1.ScheduledRestart{}, Target: rolling, Now: at("03:00:00")}
		tt.change(&in)
		set := &gateSet{}
		set.open(&in, &history{})
		if got := set.rolling(in.Now, in.Now); got != tt.want {
			t.Errorf("%s: its pods are being replaced: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestScheduleGate checks that the gate of the schedule is closed while the schedule does not run.
func TestScheduleGate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*state)
		want   string
	}{
		{"runs", func(*state) {}, ""},
		{"suspended", func(s *state) { s.spec.Suspend = true }, tidekeeperv1.ReasonSuspended},
		{"failed too often, and suspended", func(s *state) { s.spec.Suspend, s.status.ConsecutiveFailures = true, 3 }, tidekeeperv1.ReasonFailureLimit},
		{"orphaned", func(s *state) { s.orphaned, s.status.ConsecutiveFailures = true, 3 }, tidekeeperv1.ReasonOrphaned},
		{"invalid", func(s *state) { s.invalid, s.orphaned = errors.New("no hour 25"), true }, tidekeeperv1.ReasonInvalidSchedule},
	} {
		s := &state{spec: &tidekeeperv1.ScheduledRestartSpec{FailureLimit: 3}, status: &tidekeeperv1.ScheduledRestartStatus{}}
		tt.change(s)
		g := &scheduleGate{state: s, triggers: func() string { return "" }}
		if got := g.describe(s.now, s.now); got.Reason != tt.want || got.Open != (tt.want == "") || got.Message == "" {
			t.Errorf("%s: %+v, want the reason %q", tt.name, got, tt.want)
		}
	}
}

// TestBudgetGate checks the time since which a restart waits for a slot, and checks that a restart
// outlives its slot at the maximum age.
func TestBudgetGate(t *testing.T) {
	g, wake := &budgetGate{age: 10 * time.Minute}, &alarm{}
	if b := g.blocks(); b == nil || b.reason != tidekeeperv1.ReasonBudgetExhausted || g.take(at("02:00:00")) || !g.waitingSince.Equal(at("02:00:00")) {
		t.Errorf("without a slot: %+v, waiting since %s", b, g.waitingSince)
	}
	g.follow(at("03:00:00"), at("03:09:59"), wake)
	if g.outlived || !wake.at.Equal(at("03:10:00")) {
		t.Errorf("before its time is over it has outlived its slot: %t, and wakes at %s", g.outlived, wake.at)
	}
	if g.follow(at("03:00:00"), at("03:10:00"), wake); !g.outlived {
		t.Error("it uses its slot for longer")
	}
	if g.renew(); g.outlived {
		t.Error("a restart that has ended has outlived its slot")
	}
	if g := (&budgetGate{hasSlot: true}); g.blocks() != nil || !g.take(at("02:00:00")) || !g.waitingSince.IsZero() {
		t.Errorf("with a slot it waits: %+v", g)
	}
}

// TestAlarm checks that the alarm is set to the earliest of several times, including the times at
// which to check freezes that may be lifted without an event.
func TestAlarm(t *testing.T) {
	wake := &alarm{}
	for _, step := range []struct {
		name string
		set  func()
		want time.Time
	}{
		{"nothing", func() { wake.setFor(&blocker{}) }, time.Time{}},
		{"the first", func() { wake.set(at("05:00:00")) }, at("05:00:00")},
		{"later", func() { wake.set(at("06:00:00")) }, at("05:00:00")},
		{"a blocker", func() { wake.setFor(&blocker{until: at("07:00:00"), again: at("04:00:00")}) }, at("04:00:00")},
		{"freezes of the cache", func() { (&freezeWatch{shared: time.Second}).wake(wake, at("03:00:00"), false, false) }, at("04:00:00")},
		{"freezes that are read, and a tick that is sent", func() {
			(&freezeWatch{live: true, shared: time.Second}).wake(wake, at("03:00:00"), true, false)
		}, at("04:00:00")},
		{"frozen", func() { (&freezeWatch{confirmed: 30 * time.Minute}).wake(wake, at("03:00:00"), false, true) }, at("03:30:00")},
		{"freezes that are read", func() {
			(&freezeWatch{live: true, shared: time.Second}).wake(wake, at("03:00:00"), false, false)
		}, at("03:00:01")},
		{"no durations", func() { (&freezeWatch{live: true}).wake(wake, at("02:00:00"), false, true) }, at("03:00:01")},
	} {
		if step.set(); !wake.at.Equal(step.want) {
			t.Errorf("%s: it wakes at %s, want %s", step.name, wake.at, step.want)
		}
	}
}
