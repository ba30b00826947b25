// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// progress makes the decision about the restart in progress.
type progress struct {
	state    *state
	active   *activeRestart
	triggers *triggers
	budget   *budgetGate
	rollout  *rollout
	eviction *eviction
	resender *resender
	ending   *ending
	wake     *alarm
	// live is true if the target was read from the API server. unreadable explains why the target
	// cannot be used; "" if it can. sent is the last tick (scheduled time) that this process sent
	// to the target.
	live       bool
	unreadable string
	sent       time.Time
}

// follow makes the decision about the restart in progress, and returns the next fact that this
// decision needs.
func (p *progress) follow() Need {
	active, now := p.state.status.Active, p.state.now
	tick := active.ScheduledTime.Time
	at, restarted := p.rollout.began(tick)
	if active.Eviction != nil {
		restarted = false
	}
	// After an edit of the spec, the windows may open much later. Do not wait for them, since the
	// restart already holds a slot.
	edited := active.Trigger != tidekeeperv1.TriggerSchedule && p.state.restart.Status.ObservedGeneration != p.state.restart.Generation
	if due, _ := p.triggers.of(active.Trigger).times(tick); !restarted && !edited && now.Before(due) {
		// The restart is in the status, but not due yet: another process claimed the tick early, or
		// the clock of that process was ahead.
		p.wake.set(due)
		return NeedNothing
	}
	p.active.correct()
	p.budget.follow(active.StartedTime.Time, now, p.wake)
	t := p.state.target
	switch {
	case t == nil || string(t.UID) != active.TargetUID:
		return p.targetLost(tick)
	case active.Eviction != nil:
		return p.eviction.follow()
	case !restarted:
		return p.resender.resend(tick)
	case t.Deleting:
		p.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, deletedMeanwhile)
		return NeedNothing
	default:
		return p.rollout.follow(tick, at)
	}
}

// deletedMeanwhile is the message if the workload was deleted during the restart.
const deletedMeanwhile = "the workload was deleted during the restart"

// targetLost ends a restart whose target was deleted or replaced with another workload of the same
// name.
func (p *progress) targetLost(tick time.Time) Need {
	switch {
	case !p.live:
		return NeedLiveTarget
	case p.unreadable != "":
		p.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, "during the restart: "+p.unreadable)
	case p.sent.Equal(tick):
		p.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, deletedMeanwhile)
	default:
		p.ending.complete(tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonTargetNotFound, "the workload was deleted before the restart was confirmed")
	}
	return NeedNothing
}
