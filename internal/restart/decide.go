// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// inputs are all that a decision rests on.
type inputs struct {
	restart *tidekeeperv1.ScheduledRestart

	// ticks of the schedule, or why there are none.
	ticks   *schedule.Schedule
	invalid error
	// offset from a tick to its start: this object's place in the spread.
	offset time.Duration

	// target is the workload, nil if there is none; live tells that it was
	// read from the API server itself and not from the cache.
	target *target
	live   bool

	// startups is how long the new pods took to become ready, nil if nobody has
	// asked yet. Who knows nothing about pods says that there are none.
	startups []time.Duration

	// slot: the restart holds a slot of the budget.
	slot bool
	// sent is the tick that this process has sent last. The workload says so
	// too, but kubectl rollout undo takes that back with the rest.
	sent time.Time

	now time.Time
}

// decision is what to do, in this order: write the status, send the tick.
type decision struct {
	status tidekeeperv1.ScheduledRestartStatus

	// send is the tick to write into the target's template; zero: none.
	send time.Time

	// records are the ticks that were decided just now, for events and metrics.
	records []tidekeeperv1.RestartRecord

	// wantsSlot: everything is ready but the budget; decide again with a slot.
	// due is since when.
	wantsSlot bool
	due       time.Time

	// wantsLive: the cache is not good enough for this; decide again with what
	// the API server says itself.
	wantsLive bool

	// wantsStartups: the restart is complete; decide again with how long its
	// pods took. It is asked for only here, as it means to look at all of them.
	wantsStartups bool

	// wake is when to decide again if nothing happens before; zero: never.
	wake time.Time
}

// decider works a decision out, step by step.
type decider struct {
	inputs
	decision

	spec *tidekeeperv1.ScheduledRestartSpec
	// waiting is the gate that a tick waits at, and until when.
	waiting *gate
	until   time.Time
}

// decide says what to do about a ScheduledRestart at this time.
//
// The next tick that is not decided yet stands in status.nextScheduleTime; it
// moves on only when the tick is started, skipped or missed. Together with the
// template of the target that is all there is to remember.
func decide(in inputs) decision {
	d := &decider{inputs: in, spec: &in.restart.Spec}
	d.status = *in.restart.Status.DeepCopy()

	base := d.takeInSpec()
	if d.status.Active != nil {
		d.track()
	}
	d.setNext(base)
	if d.status.Active == nil && !d.wantsLive {
		d.start()
	}
	d.trim()
	d.wakeAtNext()
	d.setConditions()
	return d.decision
}

// takeInSpec notices that the spec was edited, and returns the time after which
// a tick counts, if none is known: a new schedule says nothing about the past,
// except for an object that nobody has seen yet. A tick that was due already is
// decided under the new spec.
func (d *decider) takeInSpec() (base time.Time) {
	base = d.now
	if d.status.ObservedGeneration == d.restart.Generation {
		return base
	}
	if d.status.ObservedGeneration == 0 {
		base = d.restart.CreationTimestamp.Time
	}
	d.status.ObservedGeneration = d.restart.Generation
	d.status.ConsecutiveFailures = 0
	if next := d.status.NextScheduleTime; next != nil && next.After(d.now) {
		d.status.NextScheduleTime = nil
	}
	return base
}

// stopped returns why the schedule does not run, or "".
func (d *decider) stopped() string {
	switch {
	case d.invalid != nil:
		return ReasonInvalidSchedule
	case d.status.ConsecutiveFailures >= d.spec.FailureLimit:
		return ReasonFailureLimit
	case d.spec.Suspend:
		return ReasonSuspended
	default:
		return ""
	}
}

// setNext finds the next tick after base, if none is known. While the schedule
// does not run there is none, and one that was due is skipped.
func (d *decider) setNext(base time.Time) {
	next := d.status.NextScheduleTime
	if reason := d.stopped(); reason != "" {
		if next != nil && !next.After(d.now) {
			d.record(tidekeeperv1.RestartRecord{
				ScheduledTime: *next, Trigger: tidekeeperv1.TriggerSchedule,
				Outcome: tidekeeperv1.OutcomeSkipped, Reason: reason, Message: "the schedule was stopped before it could be started",
			})
		}
		d.status.NextScheduleTime = nil
		return
	}
	if next == nil {
		d.advance(base)
	}
}

// advance sets the next tick to the first after a time.
func (d *decider) advance(after time.Time) {
	d.status.NextScheduleTime = nil
	if next, ok := d.ticks.Next(after); ok {
		d.status.NextScheduleTime = &metav1.Time{Time: next}
	}
}

// track follows the restart that is under way.
func (d *decider) track() {
	active := d.status.Active
	if active.StartedTime.After(d.now) {
		// The clock that it was claimed by was ahead of this one, or was set back.
		// By that time it would end before it began, and the deadline be as late.
		active.StartedTime = metav1.Time{Time: d.now}
	}
	tick := active.ScheduledTime.Time
	t := d.target
	if t == nil || string(t.uid) != active.TargetUID || t.deleting {
		d.finish(tidekeeperv1.OutcomeFailed, ReasonTargetNotFound,
			"the workload that was restarted was deleted meanwhile, or is not the target any more")
		return
	}
	at, served := t.restartedFor(tick, d.now)
	if !served {
		d.sendAgain(tick)
		return
	}
	deadline := active.StartedTime.Add(seconds(d.spec.ProgressDeadlineSeconds))
	switch {
	case t.rollout.exceeded:
		d.finish(tidekeeperv1.OutcomeFailed, ReasonProgressDeadline, fmt.Sprintf("%s has exceeded its own progress deadline: %s", t, t.rollout.message))
	case t.rollout.complete() && d.startups == nil:
		d.wantsStartups = true
	case t.rollout.complete():
		message := ""
		if at.After(tick) {
			// Somebody else's restart came on top; the outcome is that one's.
			message = "restarted once more meanwhile, at " + at.UTC().Format(time.RFC3339)
		}
		d.finish(tidekeeperv1.OutcomeSucceeded, "", message)
	case !d.now.Before(deadline):
		d.finish(tidekeeperv1.OutcomeFailed, ReasonTimeout, fmt.Sprintf("not complete after %d s: %s", d.spec.ProgressDeadlineSeconds, t.rollout.message))
	default:
		d.wakeAt(deadline)
	}
}

// sendAgain decides about a restart that was claimed, but whose tick the
// template does not have: the manager died in between, the API server refused
// it, or somebody took it back.
func (d *decider) sendAgain(tick time.Time) {
	t := d.target
	if d.sent.Equal(tick) || t.sentFor(tick, d.now) {
		if !d.live {
			// The cache may not know yet that it was sent.
			d.wantsLive = true
			return
		}
		d.finish(tidekeeperv1.OutcomeFailed, ReasonReverted, fmt.Sprintf("the template of %s was set back while it was rolled out", t))
		return
	}
	due, deadline := d.window(tick, d.status.Active.Trigger)
	closed := closedGate(d.spec, t)
	switch {
	case d.now.Before(due):
		// The clock that it was claimed by was ahead of this one.
		d.wakeAt(due)
	case d.now.After(deadline) && !d.live:
		// It may have been sent, and the cache not know yet.
		d.wantsLive = true
	case d.now.After(deadline):
		d.finish(tidekeeperv1.OutcomeMissed, ReasonDeadlineExceeded, "it was not sent before its deadline")
	case closed != nil && closed.forGood:
		d.finish(tidekeeperv1.OutcomeSkipped, closed.reason, closed.message)
	case closed != nil:
		d.waiting, d.until = closed, deadline
		d.wakeAt(deadline.Add(time.Second))
	default:
		d.send = tick
	}
}

// finish ends the restart that is under way.
func (d *decider) finish(outcome tidekeeperv1.Outcome, reason, message string) {
	active := d.status.Active
	d.status.Active = nil
	record := tidekeeperv1.RestartRecord{
		ScheduledTime: active.ScheduledTime, Trigger: active.Trigger, StartedTime: &active.StartedTime,
		Outcome: outcome, Reason: reason, Message: message,
	}
	if outcome == tidekeeperv1.OutcomeSucceeded {
		record.Pods = d.target.pods
		record.PodStartup = startupOf(d.startups, d.status.History)
	}
	d.record(record)
	switch outcome {
	case tidekeeperv1.OutcomeSucceeded:
		d.status.ConsecutiveFailures = 0
		d.status.LastSuccessfulTime = &metav1.Time{Time: d.now}
	case tidekeeperv1.OutcomeFailed:
		d.status.ConsecutiveFailures++
	}
}

// candidate is a tick that is due.
type candidate struct {
	tick    time.Time
	trigger tidekeeperv1.Trigger
	// earlier ticks of the schedule are due too, the last of them at before;
	// this one stands for all.
	earlier int
	before  time.Time
}

// start starts the tick that is due, if there is one.
func (d *decider) start() {
	request, scheduled := d.requested(), d.scheduled()
	c := scheduled
	switch {
	case request == nil && scheduled == nil:
		return
	case scheduled == nil:
		c = request
	case request != nil:
		// Both are due: one restart serves both.
		first := request
		if request.tick.After(scheduled.tick) {
			c, first = request, scheduled
		}
		d.settle(first, tidekeeperv1.OutcomeSkipped, ReasonSuperseded, "one restart serves this tick and the one of "+c.tick.UTC().Format(time.RFC3339))
	}

	_, deadline := d.window(c.tick, c.trigger)
	closed := closedGate(d.spec, d.target)
	switch {
	case d.served(c):
		d.settle(c, tidekeeperv1.OutcomeSkipped, ReasonAlreadyRestarted, fmt.Sprintf("%s was restarted since then", d.target))
	case closed != nil && closed.forGood:
		d.settle(c, tidekeeperv1.OutcomeSkipped, closed.reason, closed.message)
	case d.now.After(deadline) && closed != nil:
		d.settle(c, tidekeeperv1.OutcomeMissed, closed.reason, "until the deadline "+closed.message)
	case d.now.After(deadline) && d.waitedForSlot():
		d.settle(c, tidekeeperv1.OutcomeMissed, ReasonBudget, "until the deadline too many other restarts were under way")
	case d.now.After(deadline):
		d.settle(c, tidekeeperv1.OutcomeMissed, ReasonDeadlineExceeded, "no manager ran before the deadline")
	case closed != nil:
		d.waiting, d.until = closed, deadline
		d.wakeAt(deadline.Add(time.Second))
	case !d.slot:
		d.waiting = &gate{reason: ReasonBudget, message: "as many restarts as may be are under way"}
		d.until = deadline
		d.wantsSlot, d.due = true, c.tick
		d.wakeAt(deadline.Add(time.Second))
	default:
		d.claim(c)
	}
}

// served tells whether the target was restarted for the candidate or later.
func (d *decider) served(c *candidate) bool {
	if d.target == nil {
		return false
	}
	_, restarted := d.target.restartedFor(c.tick, d.now)
	return restarted || d.target.sentFor(c.tick, d.now)
}

// requested returns the tick that the annotation asks for, if it is due.
func (d *decider) requested() *candidate {
	at, err := requestedTime(d.restart)
	if err != nil || at.IsZero() || d.status.LastRequestTime != nil && !at.After(d.status.LastRequestTime.Time) {
		return nil
	}
	if at.After(d.now) {
		d.wakeAt(at)
		return nil
	}
	return &candidate{tick: at, trigger: tidekeeperv1.TriggerRequest}
}

// requestedTime returns what the annotation that asks for a restart says, in
// whole seconds; the zero time if there is none.
func requestedTime(restart *tidekeeperv1.ScheduledRestart) (time.Time, error) {
	value := restart.Annotations[tidekeeperv1.RestartNowAnnotation]
	if value == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("the annotation %s must be a time such as %s, and is %q",
			tidekeeperv1.RestartNowAnnotation, "2026-01-31T15:04:05Z", value)
	}
	return at.Truncate(time.Second).UTC(), nil
}

// scheduled returns the latest tick of the schedule that is due, if there is one.
func (d *decider) scheduled() *candidate {
	if d.status.NextScheduleTime == nil {
		return nil
	}
	first, upTo := d.status.NextScheduleTime.Time, d.now.Add(-d.offset)
	if first.After(upTo) {
		return nil
	}
	c := &candidate{tick: first.UTC(), trigger: tidekeeperv1.TriggerSchedule}
	if latest, between, ok := d.ticks.Latest(first, upTo); ok {
		c.tick, c.earlier, c.before = latest, between+1, first.UTC()
		if before, _, ok := d.ticks.Latest(first, latest.Add(-time.Second)); ok {
			c.before = before
		}
	}
	return c
}

// settle decides about a tick without starting it.
func (d *decider) settle(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) {
	d.takeEarlier(c)
	d.record(tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.tick}, Trigger: c.trigger, Outcome: outcome, Reason: reason, Message: message,
	})
	d.moveOn(c)
}

// claim starts a tick: first it stands in the status that it was started, then
// it is sent. A crash in between is mended by [decider.sendAgain].
func (d *decider) claim(c *candidate) {
	d.takeEarlier(c)
	d.status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: metav1.Time{Time: c.tick}, StartedTime: metav1.Time{Time: d.now}, Trigger: c.trigger, TargetUID: string(d.target.uid),
	}
	d.status.LastScheduleTime = &metav1.Time{Time: c.tick}
	d.moveOn(c)
	d.send = c.tick
	d.wakeAt(d.now.Add(seconds(d.spec.ProgressDeadlineSeconds)))
}

// takeEarlier records the ticks before a candidate that nobody has decided
// about, as one: they are not made up for.
func (d *decider) takeEarlier(c *candidate) {
	if c.earlier == 0 {
		return
	}
	d.record(tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.before}, Trigger: c.trigger, Outcome: tidekeeperv1.OutcomeMissed,
		Reason: ReasonSuperseded, Message: "a later tick is due already", EarlierTicks: int32(c.earlier - 1),
	})
}

// moveOn leaves a tick behind.
func (d *decider) moveOn(c *candidate) {
	if c.trigger == tidekeeperv1.TriggerRequest {
		d.status.LastRequestTime = &metav1.Time{Time: c.tick}
		return
	}
	d.advance(c.tick)
}

// record puts a tick on top of the history.
func (d *decider) record(r tidekeeperv1.RestartRecord) {
	r.CompletedTime = metav1.Time{Time: d.now}
	d.records = append(d.records, r)
	d.status.History = append([]tidekeeperv1.RestartRecord{r}, d.status.History...)
}

// trim drops the oldest of the history.
func (d *decider) trim() {
	if limit := int(max(1, d.spec.HistoryLimit)); len(d.status.History) > limit {
		d.status.History = d.status.History[:limit]
	}
}

// window is when a tick is due, and until when it may be started.
func (d *decider) window(tick time.Time, trigger tidekeeperv1.Trigger) (due, deadline time.Time) {
	due = tick
	if trigger == tidekeeperv1.TriggerSchedule {
		due = due.Add(d.offset)
	}
	return due, due.Add(seconds(d.spec.StartingDeadlineSeconds))
}

// waitedForSlot tells whether the last status said that the tick waits for the
// budget.
func (d *decider) waitedForSlot() bool {
	ready := meta.FindStatusCondition(d.restart.Status.Conditions, ConditionReady)
	return ready != nil && ready.Reason == ReasonBudget
}

// wakeAtNext wakes at the next tick of the schedule, unless a restart is under
// way: that ends first.
func (d *decider) wakeAtNext() {
	if next := d.status.NextScheduleTime; next != nil && d.status.Active == nil {
		if start := next.Add(d.offset); start.After(d.now) {
			d.wakeAt(start)
		}
	}
}

func (d *decider) wakeAt(at time.Time) {
	if d.wake.IsZero() || at.Before(d.wake) {
		d.wake = at
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
