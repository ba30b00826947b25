// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// decider holds the parts of a decision. Each part owns its fields of the status.
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

	// other is a second decider, which computes the status that would result if no tick were
	// claimed early.
	other *decider
}

// Decider makes decisions one after the other and reuses its memory allocations, since a forecast
// makes a million decisions. The zero value is ready to use.
type Decider struct{ decider decider }

// Decide is like the function [Decide], but reuses the memory allocations of the Decider.
func (d *Decider) Decide(in Input) Output { return d.decider.decideAbout(in) }

// Decide makes a decision about a ScheduledRestart.
//
// status.nextScheduleTime is the next undecided tick. It advances only when that tick is started,
// skipped or missed. Decisions need no state other than the status and the annotations of the
// target.
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

// withoutClaim returns the status that would result if no tick were claimed early.
func (d *decider) withoutClaim() *tidekeeperv1.ScheduledRestartStatus {
	if d.other == nil {
		d.other = &decider{}
	}
	in := d.in
	in.ClaimAhead = 0
	return new(d.other.decideAbout(in).Status)
}

// prepare initializes the parts of a decision for the given input.
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

// earlyClaim returns the early claim of the restart in progress. Its window gate ignores the
// duration of the last restart, which was already compared with the window when the tick was
// claimed.
func (d *decider) earlyClaim() *earlyClaim {
	set := &gateSet{}
	set.open(&d.in, &history{now: d.in.Now})
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
		// If a restart is due now, leave it to the next decision: it needs its own slot, must come
		// after restarts that have waited longer, and uses the target of the spec.
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
	if !d.sending.tick.IsZero() {
		c.failure = d.in.SendFailure
	}
	c.set()
	return need
}

// rolling reports whether the pods of the target are being replaced.
func (d *decider) rolling() bool {
	return d.gates.rolling(d.state.now, d.triggers.lastDue(d.state.now))
}

// follow makes the decision about the restart in progress, and returns the next fact that it needs.
func (d *decider) follow() Need {
	in := &d.in
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

// start starts a restart for a due tick, or claims a tick that will be due soon.
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

// poll sets the alarm for the next read of a target whose changes cause no events. Reads are
// frequent while a tick waits for the target, and rare while the target does not exist.
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
