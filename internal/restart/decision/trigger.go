// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// candidate is a tick (the scheduled time of a restart) for which a restart may start.
type candidate struct {
	tick    time.Time
	trigger tidekeeperv1.Trigger
	// due is the time from which on the restart may start. deadline is the latest time at which it
	// may start; zero if there is none.
	due, deadline time.Time
	// earlier is the number of earlier ticks of the schedule that are also due. first is the first
	// of these ticks, or the tick itself without earlier ticks. before is the last of them. A
	// single restart serves all of them.
	earlier       int
	first, before time.Time
}

// candidateOf returns the candidate for a tick (a scheduled time) without earlier due ticks.
func candidateOf(t trigger, name tidekeeperv1.Trigger, tick time.Time) candidate {
	due, deadline := t.times(tick)
	return candidate{tick: tick, trigger: name, due: due, deadline: deadline, first: tick}
}

// newCandidate is like [candidateOf], but returns a pointer to a new candidate.
func newCandidate(t trigger, name tidekeeperv1.Trigger, tick time.Time) *candidate {
	return new(candidateOf(t, name, tick))
}

// trigger is a reason for restarts, such as the schedule. Each field of the status is written by at
// most one trigger.
type trigger interface {
	// times returns the due time of the restart for a tick (a scheduled time), and its deadline,
	// the latest time at which it may start. The deadline is zero if there is none.
	times(tick time.Time) (due, deadline time.Time)
	// candidate returns the restart of the trigger that is due now; nil if none is due.
	candidate() *candidate
	// confirm returns the fact that must be read from the API server before a restart starts,
	// because the cache may be stale.
	confirm() Need
	// pass tells the trigger that the tick of the candidate was started, skipped or missed, so that
	// the trigger continues with the next tick.
	pass(c *candidate)
}

// podTrigger is a trigger that depends on the state of the pods. Its restarts have no deadline. If
// the tick of a restart cannot be sent to the target, the restart is removed from the status
// without a history entry. It becomes due again while its reason lasts.
type podTrigger interface {
	trigger
	// possible reports whether the restart in progress, whose tick was not sent yet, can still be
	// sent to the target.
	possible() bool
	// lasts reports whether the reason for the restart in progress, whose tick was not sent yet,
	// still exists. It also returns the next fact that is needed to determine this.
	lasts(active *tidekeeperv1.ActiveRestart) (bool, Need)
}

// triggers holds one trigger of each type.
type triggers struct {
	state    *state
	schedule scheduleTrigger
	request  requestTrigger
	age      ageTrigger
	change   changeTrigger
}

// of returns the trigger with the given name.
func (t *triggers) of(name tidekeeperv1.Trigger) trigger {
	switch name {
	case tidekeeperv1.TriggerSchedule:
		return &t.schedule
	case tidekeeperv1.TriggerAge:
		return &t.age
	case tidekeeperv1.TriggerChange:
		return &t.change
	default:
		return &t.request
	}
}

// due reports whether a restart is due for any trigger.
func (t *triggers) due() bool {
	for _, name := range Triggers {
		if t.of(name).candidate() != nil {
			return true
		}
	}
	return false
}

// pass tells the trigger of the candidate that the candidate's tick was started, skipped or missed.
func (t *triggers) pass(c *candidate) {
	t.noteTarget()
	t.of(c.trigger).pass(c)
}

// noteTarget records the target of the next tick in the status. It must be called only when the
// status changes anyway, since it would otherwise cause an additional status write.
func (t *triggers) noteTarget() {
	if noted := t.state.status.ObservedTargetRef; noted != nil && *noted == t.state.spec.TargetRef {
		return
	}
	t.state.status.ObservedTargetRef = new(t.state.spec.TargetRef)
}

// lastDue returns the due time of the restart that would start at the given time. As a restart
// serves all triggers, this is their latest due time. Only the predecessors (spec.after) are
// compared with this time. Without predecessors, or for a time in the future, lastDue therefore
// returns the given time.
func (t *triggers) lastDue(at time.Time) time.Time {
	if at.After(t.state.now) || len(t.state.spec.After) == 0 {
		return at
	}
	if active := t.state.restart.Status.Active; active != nil {
		due, _ := t.of(active.Trigger).times(active.ScheduledTime.Time)
		return due
	}
	var last time.Time
	for _, name := range Triggers {
		if c := t.of(name).candidate(); c != nil {
			last = later(last, c.due)
		}
	}
	if last.IsZero() {
		return at
	}
	return last
}

// upcoming returns the next restart of the schedule or of a request; nil if there is none. It also
// returns nil if both are due at the same time, because a single restart then serves both.
func (t *triggers) upcoming() *candidate {
	scheduled, requested := t.schedule.upcoming(), t.request.upcoming()
	switch {
	case requested == nil:
		return scheduled
	case scheduled != nil && scheduled.due.Before(requested.due):
		return scheduled
	case scheduled != nil && scheduled.due.Equal(requested.due):
		return nil
	default:
		return requested
	}
}

// message describes the triggers other than the schedule; "" if there are none.
func (t *triggers) message() string {
	age, change := t.age.message(), t.change.message()
	if age != "" && change != "" {
		return age + "; " + change
	}
	return age + change
}
