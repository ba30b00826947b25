// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// resender handles a restart that has started according to the status, but not according to the
// target. The reason may be that the manager crashed between the two writes, that the API server
// rejected the patch of the target, or that the restart was reverted.
type resender struct {
	state    *state
	active   *activeRestart
	triggers *triggers
	gates    gates
	budget   *budgetGate
	sending  *sending
	ending   *ending
	wake     *alarm
	waiting  *waiting
	// live is true if the target was read from the API server. rolledOut reports whether a rollout
	// for the tick (the scheduled time) has ever begun; nil if unknown. sent is the last tick that
	// this process sent to the target. failure describes its last failed attempt to send the tick.
	live      bool
	rolledOut *bool
	sent      time.Time
	failure   SendFailure
}

// SendFailure describes a failed attempt to send a tick (the scheduled time of a restart) to its
// target.
type SendFailure struct {
	// Error is the error of the attempt; "" if it did not fail.
	Error string
	// Refused is true if the API server rejected the write because of its content or the manager's
	// rights, for example by an admission policy. Retries are then likely to be rejected as well.
	Refused bool
}

// String describes the failure for users; "" if there was none.
func (f SendFailure) String() string {
	switch {
	case f.Error == "":
		return ""
	case f.Refused:
		return "the API server refused it: " + f.Error
	default:
		return "the last attempt failed: " + f.Error
	}
}

// resend sends the tick of the restart in progress to the target, or ends the restart. It returns
// the next fact that the decision needs for this.
func (r *resender) resend(tick time.Time) Need {
	t := r.state.target
	switch {
	case !r.live:
		// The tick may have been sent to the target, although the cache does not show this yet.
		return NeedLiveTarget
	case r.sent.Equal(tick) || wasSent(t, tick):
		r.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonReverted, fmt.Sprintf("the restart of %s was reverted during its rollout", t))
	case r.rolledOut == nil:
		// kubectl rollout undo also reverts the annotation of the workload. If the annotation is
		// missing, the tick may therefore have been sent nevertheless.
		return NeedRolledOut
	case *r.rolledOut:
		r.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonReverted, fmt.Sprintf("%s was rolled back to an earlier revision during its rollout", t))
	default:
		if trigger, ok := r.triggers.of(r.state.status.Active.Trigger).(podTrigger); ok {
			return r.sendForPods(trigger, tick)
		}
		return r.sendUnlessObsolete(tick)
	}
	return NeedNothing
}

// sendUnlessObsolete sends the tick of a scheduled or requested restart to the target. If the
// restart must no longer start, it ends the restart instead. If the restart cannot start now, it
// waits.
func (r *resender) sendUnlessObsolete(tick time.Time) Need {
	active := r.state.status.Active
	due, deadline := r.triggers.of(active.Trigger).times(tick)
	blocked := r.gates.first(r.state.now, r.triggers.lastDue(r.state.now))
	if outcome, reason, message := r.obsolete(active, blocked); outcome != "" {
		r.ending.complete(outcome, reason, message)
		return NeedNothing
	}
	need := NeedNothing
	if blocked == nil && !r.budget.take(active.StartedTime.Time) {
		blocked, need = r.budget.blocks(), NeedSlot
	}
	if blocked != nil {
		*r.waiting = waiting{blocked, deadline}
		r.wake.setFor(blocked)
		r.wake.set(deadline.Add(time.Second))
		return need
	}
	return r.sendLate(tick, due)
}

// obsolete returns the outcome of a restart whose tick must no longer be sent to the target; "" if
// the tick must be sent.
func (r *resender) obsolete(active *tidekeeperv1.ActiveRestart, blocked *blocker) (outcome tidekeeperv1.Outcome, reason, message string) {
	tick := active.ScheduledTime.Time
	due, deadline := r.triggers.of(active.Trigger).times(tick)
	scheduled := active.Trigger == tidekeeperv1.TriggerSchedule
	switch {
	case scheduled && r.state.stopped() != "":
		return tidekeeperv1.OutcomeSkipped, r.state.stopped(), "the schedule was stopped before the restart was sent"
	case r.state.retargeted(active):
		return tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the target was edited before the restart was sent"
	case evicts(r.state.spec):
		return tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the method was edited before the restart was sent"
	case scheduled && !r.triggers.schedule.has(tick):
		return tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the schedule or its windows were edited before the restart was sent, and no longer have this tick"
	case !scheduled && r.state.now.Before(due):
		return tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the windows were edited before the restart was sent, and none is open now"
	case r.triggers.request.withdrawn(active):
		return tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonWithdrawn, "the request was withdrawn or replaced before the restart was sent"
	case r.state.now.After(deadline):
		reason, message = r.late(blocked)
		return tidekeeperv1.OutcomeMissed, reason, message
	case blocked != nil && blocked.permanent:
		return tidekeeperv1.OutcomeSkipped, blocked.reason, blocked.message
	default:
		return "", "", ""
	}
}

// sendForPods sends the tick of a restart for the age of pods or for a change, if the restart is
// still possible and necessary. Otherwise it removes the restart from the status.
func (r *resender) sendForPods(trigger podTrigger, tick time.Time) Need {
	active := r.state.status.Active
	due, _ := trigger.times(tick)
	if !trigger.possible() || r.state.retargeted(active) || r.state.now.Before(due) || r.gates.first(r.state.now, r.triggers.lastDue(r.state.now)) != nil {
		r.active.takeBack()
		return NeedNothing
	}
	if !r.budget.take(active.StartedTime.Time) {
		r.active.takeBack()
		return NeedSlot
	}
	lasts, need := trigger.lasts(active)
	switch {
	case need != NeedNothing:
		return need
	case !lasts:
		r.active.takeBack()
		return NeedNothing
	default:
		return r.sendLate(tick, due)
	}
}

// sendLate sends the tick of a restart that has already started according to the status. If the
// start is at least a second ago, the start time becomes now.
func (r *resender) sendLate(tick, due time.Time) Need {
	r.active.send(time.Second)
	r.budget.renew()
	return r.sending.send(tick, due)
}

// late returns the reason for which the tick of a started restart was not sent to the target before
// its deadline. blocked is the reason for which the restart waits now; nil if none. A failed
// attempt is reported in addition, since without the failure the restart would not have had to
// wait.
func (r *resender) late(blocked *blocker) (reason, message string) {
	const unsent = "not sent before the deadline: "
	waited, failure := r.state.waitedFor(), r.failure.String()
	switch {
	case blocked != nil:
		reason, message = blocked.reason, unsent+blocked.message
	case goneWait(waited, r.budget) != "":
		reason, message = waited, unsent+goneWait(waited, r.budget)
	case failure != "":
		return tidekeeperv1.ReasonDeadlineExceeded, unsent + failure
	default:
		return tidekeeperv1.ReasonDeadlineExceeded, "the restart was not sent before its deadline"
	}
	if failure != "" {
		message += "; before that, " + failure
	}
	return reason, message
}
