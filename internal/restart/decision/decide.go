// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// decider holds the parts of a decision. Each field of the status is written by only one part.
type decider struct {
	in  *Input
	out Output

	state    state
	active   activeRestart
	wake     alarm
	waiting  waiting
	history  history
	misses   misses
	interval interval
	gates    gateSet
	budget   budgetGate
	triggers triggers
	sending  sending
	ending   ending
	eviction eviction
	launcher launcher

	// other is a second decider. It computes the status that would result if no restart were
	// written to the status before it is due.
	other *decider
	// brief holds the conditions of earlier decisions without messages ([Input.Brief]), for reuse.
	brief briefConditions
}

// Decider makes decisions one after the other and reuses its memory allocations, since a forecast
// makes a million decisions. The zero value is ready to use.
type Decider struct{ decider decider }

// Decide is like the function [Decide], but reuses the memory allocations of the Decider. The
// output is valid until the next call.
func (d *Decider) Decide(in *Input) *Output { return d.decider.decideAbout(in) }

// Decide makes a decision about a ScheduledRestart.
//
// status.nextScheduleTime is the next undecided tick (scheduled time) of the schedule. It advances
// only when that tick is started, skipped or missed. Decisions need no state other than the status
// and the annotations of the target.
func Decide(in Input) Output { return *new(Decider).Decide(&in) }

func (d *decider) decideAbout(in *Input) *Output {
	d.prepare(in)
	if in.Restart.Status.Active != nil && in.BeforeClaim != nil {
		if c := d.earlyClaim(); !c.takesBack() {
			unchanged, need := c.keep()
			d.out.Unchanged = unchanged
			return d.output(need)
		}
		before := *in
		before.Restart = &tidekeeperv1.ScheduledRestart{ObjectMeta: in.Restart.ObjectMeta, Spec: in.Restart.Spec, Status: *in.BeforeClaim}
		d.prepare(&before)
	}
	return d.output(d.decide())
}

// withoutClaim returns the status that would result if no restart were written to the status before
// it is due.
func (d *decider) withoutClaim() *tidekeeperv1.ScheduledRestartStatus {
	if d.other == nil {
		d.other = &decider{}
	}
	in := *d.in
	in.ClaimAhead = 0
	return new(d.other.decideAbout(&in).Status)
}

// connect connects the parts of the decider to each other. They stay connected for all decisions.
func (d *decider) connect() {
	s, h, w := &d.state, &d.history, &d.wake
	s.status = &d.out.Status
	d.active = activeRestart{s}
	d.misses = misses{state: s, history: h}
	d.interval = interval{state: s, history: h}
	d.triggers = triggers{
		state:    s,
		schedule: scheduleTrigger{state: s, history: h},
		request:  requestTrigger{state: s, history: h, wake: w},
		age:      ageTrigger{state: s, history: h, wake: w},
		change:   changeTrigger{state: s, interval: &d.interval, history: h, wake: w},
	}
	d.sending = sending{query: &d.gates.query}
	d.ending = ending{state: s, active: &d.active, history: h, age: &d.triggers.age, change: &d.triggers.change, budget: &d.budget}
	d.eviction = eviction{state: s, active: &d.active, sending: &d.sending, ending: &d.ending, wake: w}
	d.launcher = launcher{state: s, active: &d.active, triggers: &d.triggers, misses: &d.misses, eviction: &d.eviction, sending: &d.sending, wake: w}
}

// prepare resets the parts of the decider for the given input, so that they keep no state of the
// previous decision.
func (d *decider) prepare(in *Input) {
	if d.in == nil {
		d.connect()
	}
	d.in, d.out, d.wake, d.waiting = in, Output{Status: copyOf(&in.Restart.Status)}, alarm{}, waiting{}
	s := &d.state
	s.restart, s.spec, s.target, s.polled, s.now = in.Restart, &in.Restart.Spec, in.Target, in.Polled, in.Now
	s.invalid, s.orphaned = in.Invalid, in.Orphaned()
	d.history.past, d.history.added, d.history.now = in.Restart.Status.History, d.history.added[:0], in.Now
	d.misses.leadingSince, d.interval.newDelay = in.LeadingSince, false
	d.gates.open(in, &d.history)
	d.budget = budgetGate{hasSlot: in.HasSlot, slots: in.Slots, age: in.SlotAge}
	schedule, request, age, change := &d.triggers.schedule, &d.triggers.request, &d.triggers.age, &d.triggers.change
	schedule.ticks, request.windows = in.InWindows(), in.Windows
	age.windows, age.ages, age.tooOld = in.Windows, in.PodAges, nil
	change.windows, change.config, change.settle, change.ages, change.changed = in.Windows, in.Config, in.ChangeSettle, in.PodAges, nil
	d.sending.freezesLive, d.sending.tick, d.sending.begun, d.sending.due = in.FreezesLive, time.Time{}, time.Time{}, time.Time{}
	d.ending.startups, d.launcher.slotAge = in.PodStartups, in.SlotAge
	d.eviction.live, d.eviction.pods, d.eviction.attempts, d.eviction.next = in.Live, in.Pods, in.Attempts, nil
}

// earlyClaim describes the restart in progress, which was written to the status before it was due.
// Its window gate ignores the duration of the last restart, because the duration was already
// compared with the window at the time of that write.
func (d *decider) earlyClaim() *earlyClaim {
	set := &gateSet{}
	set.open(d.in, &history{now: d.in.Now})
	return &earlyClaim{state: &d.state, active: &d.active, triggers: &d.triggers, gates: set.inOrder(), ahead: d.in.ClaimAhead, launcher: &d.launcher, wake: &d.wake}
}

// decide runs the steps of a decision, and returns the next fact that the decision needs.
func (d *decider) decide() Need {
	status := d.state.status
	edits := edits{state: &d.state, triggers: &d.triggers, misses: &d.misses, ending: &d.ending}
	base := edits.observe()
	d.triggers.request.observe()
	wasActive, need := status.Active, NeedNothing
	if wasActive != nil {
		need = d.follow()
	}
	d.triggers.schedule.find(base)
	same := wasActive == nil || !d.state.retargeted(wasActive)
	if status.Active == nil && same {
		if n := d.triggers.age.observe(wasActive != nil, d.rolling()); n != NeedNothing {
			return n
		}
		if n := d.triggers.change.observe(d.rolling()); n != NeedNothing {
			return n
		}
	}
	switch {
	case wasActive == nil:
		need = d.start()
	case status.Active == nil && (d.triggers.due() || !same):
		// The restart in progress has just ended. If another restart is due, or if the spec now
		// names another target, make the next decision at once. This decision cannot start a
		// restart: the next restart needs its own slot of the restart budget, which may first go to
		// restarts that have waited longer. It also restarts the target of the spec, while this
		// decision is about the target of the ended restart, which may be another workload.
		d.wake.set(d.state.now)
	}
	d.triggers.request.note()
	if !d.in.Brief {
		status.History = d.history.keep(HistoryLimit(d.state.spec))
	}
	d.triggers.schedule.wakeAtNext(&d.wake)
	d.poll()
	c := conditions{
		state: &d.state, gates: &d.gates, triggers: &d.triggers, misses: &d.misses, budget: &d.budget, waiting: &d.waiting,
		scheduled: d.in.Ticks != nil,
	}
	if d.in.Brief {
		if d.brief == nil {
			d.brief = briefConditions{}
		}
		c.brief = d.brief
	}
	if !d.sending.tick.IsZero() {
		c.failure = d.in.SendFailure
	}
	c.set()
	return need
}

// rolling reports whether no restart can start now because the pods of the target are being
// replaced.
func (d *decider) rolling() bool {
	return d.gates.rolling(d.state.now, d.triggers.lastDue(d.state.now))
}

// follow makes the decision about the restart in progress, and returns the next fact that it needs.
func (d *decider) follow() Need {
	in := d.in
	resender := resender{
		state: &d.state, active: &d.active, triggers: &d.triggers, gates: d.gates.inOrder(), budget: &d.budget, sending: &d.sending, ending: &d.ending, wake: &d.wake, waiting: &d.waiting,
		live: in.Live, rolledOut: in.RolledOut, sent: in.Sent, failure: in.SendFailure,
	}
	progress := progress{
		state: &d.state, active: &d.active, triggers: &d.triggers, budget: &d.budget, eviction: &d.eviction, resender: &resender, ending: &d.ending, wake: &d.wake,
		rollout: &rollout{state: &d.state, ending: &d.ending, wake: &d.wake, live: in.Live},
		live:    in.Live, unreadable: in.Unreadable, sent: in.Sent,
	}
	return progress.follow()
}

// start starts a restart for a due tick, or claims a tick that will be due soon (writes it to
// status.active). It returns the next fact that the decision needs.
func (d *decider) start() Need {
	starter := starter{
		state: &d.state, triggers: &d.triggers, gates: d.gates.inOrder(), query: &d.gates.query, budget: &d.budget, misses: &d.misses, eviction: &d.eviction,
		wake: &d.wake, waiting: &d.waiting, leadingSince: d.in.LeadingSince,
	}
	chosen := starter.choose()
	if chosen.idle {
		ahead := aheadClaimer{state: &d.state, triggers: &d.triggers, gates: d.gates.inOrder(), ahead: d.in.ClaimAhead, hasSlot: d.in.HasSlot, wake: &d.wake}
		if chosen = ahead.choose(); chosen.start != nil {
			d.out.BeforeClaim = d.withoutClaim()
		}
	}
	if chosen.start == nil {
		return chosen.needs
	}
	return d.launcher.launch(chosen.start)
}

// poll schedules the next read of a target whose changes cause no events. Reads are frequent while
// a due restart waits for the target, and rare while the target does not exist.
func (d *decider) poll() {
	switch {
	case !d.state.polled || d.state.status.Active != nil:
	case d.waiting.blocker != nil && d.waiting.blocker.until.IsZero(): // If it is known when the blocker will end, the target need not be polled.
		d.wake.set(d.state.now.Add(pollInterval))
	case d.state.target == nil:
		d.wake.set(d.state.now.Add(idleInterval))
	}
}

// output returns the output of the decision. need is the next fact that the decision needs.
func (d *decider) output(need Need) *Output {
	out := &d.out
	ready := meta.FindStatusCondition(out.Status.Conditions, tidekeeperv1.ConditionReady)
	watch := freezeWatch{live: d.in.FreezesLive, shared: d.in.FreezesShared, confirmed: d.in.FreezeConfirmed}
	watch.wake(&d.wake, d.state.now, !d.sending.tick.IsZero(), ready != nil && ready.Reason == tidekeeperv1.ReasonFrozen)
	out.Needs, out.Records, out.Wake = need, d.history.added, d.wake.at
	out.Send, out.Due, out.Started, out.Evict = d.sending.tick, d.sending.due, d.sending.begun, d.eviction.next
	out.WaitingSince, out.Outlived = d.budget.waitingSince, d.budget.outlived
	return out
}

// copyOf returns a shallow copy of a status that may be modified. The copy shares fields that
// decisions only replace as a whole, above all the history entries.
func copyOf(status *tidekeeperv1.ScheduledRestartStatus) tidekeeperv1.ScheduledRestartStatus {
	out := *status
	out.Active = status.Active.DeepCopy()
	return out
}

// TargetRef returns the reference to the workload that the restart in progress restarts or, without
// a restart in progress, the target reference of the spec.
func TargetRef(active *tidekeeperv1.ActiveRestart, spec *tidekeeperv1.ScheduledRestartSpec) tidekeeperv1.TargetRef {
	if active != nil && active.TargetRef != nil {
		return *active.TargetRef
	}
	return spec.TargetRef
}
