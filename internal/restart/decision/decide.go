// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// decider has the parts of a decision, each of which owns its fields.
type decider struct {
	in  Input
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

	// other decides, during a decision, to which status the input comes without a claim.
	other *decider
}

// Decider decides about ScheduledRestarts, one after the other, in memory of its own: a forecast decides a
// million times. The zero value is ready for use.
type Decider struct{ decider decider }

// Decide decides about a ScheduledRestart, see the function [Decide].
func (d *Decider) Decide(in Input) Output { return d.decider.decideAbout(in) }

// Decide decides about a ScheduledRestart.
//
// status.nextScheduleTime is the next tick that is not decided yet. It advances only
// when that tick is started, skipped or missed. Together with the marks on the target,
// that is all the memory that is needed.
func Decide(in Input) Output { return new(Decider).Decide(in) }

func (d *decider) decideAbout(in Input) Output {
	d.prepare(in)
	if in.Restart.Status.Active != nil && in.BeforeClaim != nil {
		if c := d.earlyClaim(); !c.takesBack() {
			unchanged, need := c.keep()
			d.out.Unchanged = unchanged
			return d.output(need)
		}
		in.Restart = &tidekeeperv1.ScheduledRestart{ObjectMeta: in.Restart.ObjectMeta, Spec: in.Restart.Spec, Status: *in.BeforeClaim}
		d.prepare(in)
	}
	return d.output(d.decide())
}

// withoutClaim returns the status to which the input comes if no tick is claimed before it is due.
func (d *decider) withoutClaim() *tidekeeperv1.ScheduledRestartStatus {
	if d.other == nil {
		d.other = &decider{}
	}
	in := d.in
	in.ClaimAhead = 0
	return new(d.other.decideAbout(in).Status)
}

// prepare connects the parts for an input.
func (d *decider) prepare(in Input) {
	*d = decider{in: in, other: d.other}
	d.out.Status = copyOf(&in.Restart.Status)
	d.state = state{
		restart: in.Restart, spec: &in.Restart.Spec, status: &d.out.Status, target: in.Target, polled: in.Polled, now: in.Now,
		invalid: in.Invalid, orphaned: in.Orphaned(),
	}
	d.active = activeRestart{&d.state}
	d.history = history{past: in.Restart.Status.History, now: in.Now}
	d.misses = misses{state: &d.state, history: &d.history, leadingSince: in.LeadingSince}
	d.interval = interval{state: &d.state, history: &d.history}
	d.gates.open(&in, &d.history)
	d.budget = budgetGate{hasSlot: in.HasSlot, slots: in.Slots, age: in.SlotAge}
	d.triggers = triggers{
		state:    &d.state,
		schedule: scheduleTrigger{state: &d.state, ticks: in.InWindows(), history: &d.history},
		request:  requestTrigger{state: &d.state, windows: in.Windows, history: &d.history, wake: &d.wake},
		age:      ageTrigger{state: &d.state, windows: in.Windows, ages: in.PodAges, history: &d.history, wake: &d.wake},
		change: changeTrigger{
			state: &d.state, windows: in.Windows, interval: &d.interval, config: in.Config, settle: in.ChangeSettle, ages: in.PodAges,
			history: &d.history, wake: &d.wake,
		},
	}
	d.sending = sending{query: &d.gates.query, freezesLive: in.FreezesLive}
	d.ending = ending{state: &d.state, active: &d.active, history: &d.history, age: &d.triggers.age, change: &d.triggers.change, budget: &d.budget, startups: in.PodStartups}
	d.eviction = eviction{state: &d.state, active: &d.active, sending: &d.sending, ending: &d.ending, wake: &d.wake, live: in.Live, pods: in.Pods, attempts: in.Attempts}
	d.launcher = launcher{state: &d.state, active: &d.active, triggers: &d.triggers, misses: &d.misses, eviction: &d.eviction, sending: &d.sending, wake: &d.wake, slotAge: in.SlotAge}
}

// earlyClaim returns the claim of the restart in progress. How long the last restart took was weighed
// against the window when the tick was claimed.
func (d *decider) earlyClaim() *earlyClaim {
	set := &gateSet{}
	set.open(&d.in, &history{now: d.in.Now})
	return &earlyClaim{state: &d.state, active: &d.active, triggers: &d.triggers, gates: set.inOrder(), ahead: d.in.ClaimAhead, launcher: &d.launcher, wake: &d.wake}
}

// decide decides step by step, and returns the fact that the decision depends on.
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
		// A restart that is due now is decided next: with a slot of its own, after
		// the restarts that have waited longer, and with the target of the spec.
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
		scheduled: d.in.Ticks != nil, brief: d.in.Brief,
	}
	c.set()
	return need
}

// rolling reports whether the pods of the target are being replaced.
func (d *decider) rolling() bool {
	return d.gates.rolling(d.state.now, d.triggers.lastDue(d.state.now))
}

// follow follows the restart in progress.
func (d *decider) follow() Need {
	in := &d.in
	resender := resender{
		state: &d.state, active: &d.active, triggers: &d.triggers, gates: d.gates.inOrder(), budget: &d.budget, sending: &d.sending, ending: &d.ending, wake: &d.wake, waiting: &d.waiting,
		live: in.Live, rolledOut: in.RolledOut, sent: in.Sent, refused: in.Refused,
	}
	progress := progress{
		state: &d.state, active: &d.active, triggers: &d.triggers, budget: &d.budget, eviction: &d.eviction, resender: &resender, ending: &d.ending, wake: &d.wake,
		rollout: &rollout{state: &d.state, ending: &d.ending, wake: &d.wake, live: in.Live},
		live:    in.Live, unreadable: in.Unreadable, sent: in.Sent,
	}
	return progress.follow()
}

// start starts a restart for a tick that is due, or claims a tick that is due soon.
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

// poll wakes when a target has to be looked at that has no events: while a tick waits for it, and
// seldom if it does not exist.
func (d *decider) poll() {
	switch {
	case !d.state.polled || d.state.status.Active != nil:
	case d.waiting.blocker != nil && d.waiting.blocker.until.IsZero(): // Otherwise the tick waits for a time.
		d.wake.set(d.state.now.Add(pollInterval))
	case d.state.target == nil:
		d.wake.set(d.state.now.Add(idleInterval))
	}
}

// output returns the output of the decision, which depends on a fact.
func (d *decider) output(need Need) Output {
	out := d.out
	ready := meta.FindStatusCondition(out.Status.Conditions, tidekeeperv1.ConditionReady)
	watch := freezeWatch{live: d.in.FreezesLive, shared: d.in.FreezesShared, confirmed: d.in.FreezeConfirmed}
	watch.wake(&d.wake, d.state.now, !d.sending.tick.IsZero(), ready != nil && ready.Reason == tidekeeperv1.ReasonFrozen)
	out.Needs, out.Records, out.Wake = need, d.history.added, d.wake.at
	out.Send, out.Due, out.Started, out.Evict = d.sending.tick, d.sending.due, d.sending.begun, d.eviction.next
	out.WaitingSince, out.Outlived = d.budget.waitingSince, d.budget.outlived
	return out
}

// copyOf returns a status to change: it shares with the other the fields that a decision replaces and
// never writes to, such as the records of the history, which are most of it.
func copyOf(status *tidekeeperv1.ScheduledRestartStatus) tidekeeperv1.ScheduledRestartStatus {
	out := *status
	out.Active = status.Active.DeepCopy()
	return out
}

// TargetRef returns the workload that is being restarted, or that would be.
func TargetRef(active *tidekeeperv1.ActiveRestart, spec *tidekeeperv1.ScheduledRestartSpec) tidekeeperv1.TargetRef {
	if active != nil && active.TargetRef != nil {
		return *active.TargetRef
	}
	return spec.TargetRef
}
