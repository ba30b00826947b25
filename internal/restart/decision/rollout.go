// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// nodesInterval is the interval between reads of a DaemonSet-like workload during a restart without events: a
// node may have failed.
const nodesInterval = 30 * time.Second

// rollout follows the rollout of the target during a restart.
type rollout struct {
	state  *state
	ending *ending
	wake   *alarm
	// live is set if the target was read from the API server.
	live bool
}

// began returns the time at which the target was restarted for the tick or later.
func (r *rollout) began(tick time.Time) (at time.Time, ok bool) {
	t := r.state.target
	if t == nil {
		return time.Time{}, false
	}
	if at, ok := restartedFor(t, tick, r.state.now); ok || !sentFor(t, tick, r.state.now) {
		return at, ok
	}
	// The tick was sent, so a later time in the spec was written after it, however far ahead the clock of its
	// writer was.
	at, ok = parseTime(t.RestartedAt)
	return at, ok && !at.Before(tick)
}

// follow follows the rollout for a tick. The target was restarted at the given time, which is at or after the
// tick.
func (r *rollout) follow(tick, at time.Time) Need {
	t := r.state.target
	deadline := r.state.status.Active.StartedTime.Add(seconds(r.state.spec.ProgressDeadlineSeconds))
	late := !r.state.now.Before(deadline)
	switch {
	case (t.Rollout.Exceeded || late) && !r.live:
		// The cache may not show yet that the rollout is complete.
		return NeedLiveTarget
	case t.Rollout.Exceeded:
		r.ending.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonProgressDeadline, fmt.Sprintf("%s has exceeded its own progress deadline: %s", t, t.Rollout.Message))
	case t.Rollout.Complete() && r.ending.startups == nil:
		return NeedPodStartups
	case t.Rollout.Complete():
		message := ""
		if at.After(tick) {
			// The outcome is that of the later restart, which another client started.
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
