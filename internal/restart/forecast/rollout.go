// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// begin returns the end of the rollout that is in progress when the forecast begins; zero if no
// rollout is in progress, or if the rollout never completes. hangs is the reason for which it never
// completes; "" otherwise. o is a ScheduledRestart that restarts the workload.
func (t *target) begin(o *object, now time.Time) (ends time.Time, hangs string) {
	p, active := &t.State.Rollout, o.restart.Status.Active
	switch {
	case active != nil && active.Eviction != nil:
		// The state of a workload does not show that a restart is evicting its pods, so mark the
		// workload as restarted.
		markRestarted(t.State, active.ScheduledTime.Time, o.duration)
	case p.Halted != "":
		if p.Updating {
			hangs = p.Halted
		}
		return time.Time{}, hangs
	case p.Exceeded || t.overdue(o, now):
		t.stuck = true
		p.Exceeded = p.Exceeded || t.ProgressLimit > 0 // The workload's controller will soon report the exceeded deadline, if it has not yet.
		return time.Time{}, cmp.Or(p.Message, "it has exceeded its progress deadline")
	case p.Complete():
		return time.Time{}, ""
	case !p.Updating && t.LastProgress.IsZero() && (active == nil || t.State.LastTick != workload.FormatTime(active.ScheduledTime.Time)):
		return time.Time{}, "" // Pods are not available, but no rollout replaces them.
	}
	return completion(o, now), ""
}

// overdue reports whether the rollout in progress has made no progress for longer than its
// deadline. The deadline is that of the workload's controller or, if the controller has none, the
// progress deadline of the given ScheduledRestart.
func (t *target) overdue(o *object, now time.Time) bool {
	limit := cmp.Or(t.ProgressLimit, time.Duration(o.restart.Spec.ProgressDeadlineSeconds)*time.Second)
	return !t.LastProgress.IsZero() && now.Sub(t.LastProgress) > limit
}

// completion returns the completion time of a rollout that is in progress when the forecast begins.
// The rollout takes the usual duration of the ScheduledRestart's restarts; if that time has already
// passed, the rollout completes immediately.
func completion(o *object, now time.Time) time.Time {
	started := now
	if active := o.restart.Status.Active; active != nil {
		started = active.StartedTime.Time
	}
	return later(now, started.Add(o.duration+turnaround))
}

// restart starts a rollout for a tick (the scheduled time of a restart). It returns the end of the
// rollout; zero if the rollout never ends.
func (t *target) restart(o *object, tick, now time.Time) (ends time.Time) {
	progress := t.State.Rollout.Message
	markRestarted(t.State, tick, o.duration)
	t.began = now
	switch {
	case !t.stuck:
		return now.Add(o.duration + turnaround)
	case t.ProgressLimit > 0:
		ends = now.Add(t.ProgressLimit)
	}
	t.State.Rollout.Message = progress // The rollout progresses only as far as the previous rollout, because the pods have the same template.
	return ends
}

// markRestarted marks a workload as restarted for the given tick (scheduled time), with a rollout
// in progress.
func markRestarted(state *workload.State, tick time.Time, duration time.Duration) {
	at := workload.FormatTime(tick)
	state.RestartedAt, state.LastTick = at, at
	state.Rollout = workload.Progress{Updating: true, Message: fmt.Sprintf("its last restart took %s", duration)}
	state.Availability = workload.Progress{Message: state.Rollout.Message}
}

// end ends the rollout in progress. If the workload is stuck, the rollout exceeds its progress
// deadline. Otherwise, it completes and has replaced all pods.
func (t *target) end() {
	if t.stuck {
		t.State.Rollout.Exceeded = true
		return
	}
	t.State.Rollout, t.State.Availability = workload.Progress{Available: true}, workload.Progress{Available: true}
	if !t.Oldest.IsZero() {
		t.Oldest = t.began
	}
}
