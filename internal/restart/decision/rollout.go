// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// nodesInterval is the interval between reads of a workload that runs a pod on each node, such as a
// DaemonSet, during a restart. No event reports that a node has failed.
const nodesInterval = 30 * time.Second

// rollout makes the decision about a restart whose target is being rolled out.
type rollout struct {
	state  *state
	ending *ending
	wake   *alarm
	// live is true if the target was read from the API server instead of the cache.
	live bool
}

// began returns the time at which the target was restarted for the given tick (scheduled time) or a
// later time; false if it was not.
func (r *rollout) began(tick time.Time) (at time.Time, ok bool) {
	t := r.state.target
	if t == nil {
		return time.Time{}, false
	}
	if at, ok := restartedFor(t, tick, r.state.now); ok || !sentFor(t, tick, r.state.now) {
		return at, ok
	}
	// The tick was sent, so a later restart time in the pod template was written after that, even
	// if it is in the future because the clock of another client is ahead.
	at, ok = parseTime(t.RestartedAt)
	return at, ok && !at.Before(tick)
}

// follow makes the decision about the rollout for a tick, the scheduled time of the restart in
// progress. at is the time at which the target was restarted; it is not before the tick.
func (r *rollout) follow(tick, at time.Time) Need {
	t := r.state.target
	deadline := r.state.status.Active.StartedTime.Add(seconds(r.state.spec.ProgressDeadlineSeconds))
	late := !r.state.now.Before(deadline)
	switch {
	case (t.Rollout.Exceeded || late) && !r.live:
		// The rollout may be complete although the cache does not show it yet.
		return NeedLiveTarget
	case t.Rollout.Exceeded:
		r.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonProgressDeadline, fmt.Sprintf("%s has exceeded its own progress deadline: %s", t, t.Rollout.Message))
	case t.Rollout.Complete() && r.ending.startups == nil:
		return NeedPodStartups
	case t.Rollout.Complete():
		message := ""
		if at.After(tick) {
			// Another client has since started another restart, whose outcome counts.
			message = "restarted again at " + formatTime(at)
		}
		r.ending.complete(tidekeeperv1.OutcomeSucceeded, "", message)
	case late:
		r.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTimeout, fmt.Sprintf("not complete after %d s: %s", r.state.spec.ProgressDeadlineSeconds, t.Rollout.Message))
	default:
		r.wake.set(deadline)
		if t.PerNode {
			r.wake.set(r.state.now.Add(nodesInterval))
		}
	}
	return NeedNothing
}
