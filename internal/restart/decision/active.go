// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// nodesInterval is how often a workload with a pod on each node is looked at during a
// restart if nothing happens to it: one of its nodes may have failed.
const nodesInterval = 30 * time.Second

// track follows the restart in progress.
func (d *decider) track() {
	active := d.out.Status.Active
	tick := active.ScheduledTime.Time
	at, restarted := d.restarted(tick)
	if active.Eviction != nil {
		restarted = false
	}
	// Windows that were edited meanwhile may open only much later, and it has a slot.
	edited := active.Trigger != tidekeeperv1.TriggerSchedule && d.in.Restart.Status.ObservedGeneration != d.in.Restart.Generation
	if due, _ := d.times(tick, active.Trigger); !restarted && !edited && d.in.Now.Before(due) {
		// Another process claimed it ahead of its time, or its clock was ahead of this one.
		d.wakeAt(due)
		return
	}
	if active.StartedTime.After(d.in.Now) {
		// The clock by which it was started was ahead of this one, or was set back.
		// Otherwise the restart would end before it began, and its deadline would be too
		// late.
		active.StartedTime = metav1.Time{Time: d.in.Now}
	}
	if d.in.SlotAge > 0 {
		outlives := active.StartedTime.Add(d.in.SlotAge)
		if d.out.Outlived = !d.in.Now.Before(outlives); !d.out.Outlived {
			d.wakeAt(outlives)
		}
	}
	t := d.in.Target
	if t == nil || string(t.UID) != active.TargetUID {
		d.targetLost(tick)
		return
	}
	switch {
	case active.Eviction != nil:
		d.followEviction()
	case !restarted:
		d.resend(tick)
	case t.Deleting:
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, "the workload was deleted during the restart")
	default:
		d.followRollout(tick, at)
	}
}

// restarted returns when the target was restarted, if that was for the tick or later.
func (d *decider) restarted(tick time.Time) (at time.Time, ok bool) {
	t := d.in.Target
	if t == nil {
		return time.Time{}, false
	}
	if at, ok := restartedFor(t, tick, d.in.Now); ok || !sentFor(t, tick, d.in.Now) {
		return at, ok
	}
	// Our tick was sent, so a later time in the spec was written after it, however far
	// ahead the clock was that it came from.
	at, ok = parseTime(t.RestartedAt)
	return at, ok && !at.Before(tick)
}

// followRollout follows the rollout of a tick. The target was restarted at the given
// time, which is that of the tick or later.
func (d *decider) followRollout(tick, at time.Time) {
	t := d.in.Target
	deadline := d.out.Status.Active.StartedTime.Add(seconds(d.spec.ProgressDeadlineSeconds))
	late := !d.in.Now.Before(deadline)
	switch {
	case (t.Rollout.Exceeded || late) && !d.in.Live:
		// The cache may not show yet that it is complete.
		d.out.Needs = NeedLiveTarget
	case t.Rollout.Exceeded:
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonProgressDeadline, fmt.Sprintf("%s has exceeded its own progress deadline: %s", t, t.Rollout.Message))
	case t.Rollout.Complete() && d.in.PodStartups == nil:
		d.out.Needs = NeedPodStartups
	case t.Rollout.Complete():
		message := ""
		if at.After(tick) {
			// The outcome is that of the later restart, which was not ours.
			message = "restarted again at " + formatTime(at)
		}
		d.complete(tidekeeperv1.OutcomeSucceeded, "", message)
	case late:
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTimeout, fmt.Sprintf("not complete after %d s: %s", d.spec.ProgressDeadlineSeconds, t.Rollout.Message))
	default:
		d.wakeAt(deadline)
		if t.PerNode {
			d.wakeAt(d.in.Now.Add(nodesInterval))
		}
	}
}

// targetLost ends a restart whose target no longer exists, or is another workload of
// the same name.
func (d *decider) targetLost(tick time.Time) {
	switch {
	case !d.in.Live:
		d.out.Needs = NeedLiveTarget
	case d.in.Unreadable != "":
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, "during the restart: "+d.in.Unreadable)
	case d.in.Sent.Equal(tick):
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonTargetNotFound, "the workload was deleted during the restart")
	default:
		d.complete(tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonTargetNotFound, "the workload was deleted before it was known to be restarted")
	}
}

// resend decides about a restart that was started according to the status, but that the
// target does not show: the manager died in between, the API server refused the patch,
// or the restart was reverted.
func (d *decider) resend(tick time.Time) {
	t := d.in.Target
	switch {
	case !d.in.Live:
		// The cache may not show yet that the tick was sent.
		d.out.Needs = NeedLiveTarget
	case d.in.Sent.Equal(tick) || wasSent(t, tick):
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonReverted, fmt.Sprintf("the restart of %s was reverted during its rollout", t))
	case d.in.RolledOut == nil:
		// An undo reverts the annotation of the workload, too.
		d.out.Needs = NeedRolledOut
	case *d.in.RolledOut:
		d.complete(tidekeeperv1.OutcomeFailed, tidekeeperv1.ReasonReverted, fmt.Sprintf("%s was rolled back to an earlier revision during its rollout", t))
	default:
		d.sendUnlessObsolete(tick)
	}
}

// sendUnlessObsolete sends a tick that was started but not sent, unless the restart is
// no longer wanted, or must not start now.
func (d *decider) sendUnlessObsolete(tick time.Time) {
	active := d.out.Status.Active
	switch active.Trigger {
	case tidekeeperv1.TriggerAge:
		d.sendForAge(tick)
		return
	case tidekeeperv1.TriggerChange:
		d.sendForChange(tick)
		return
	}
	due, deadline := d.times(tick, active.Trigger)
	blocked := d.blocker(d.in.Now)
	scheduled := active.Trigger == tidekeeperv1.TriggerSchedule
	switch {
	case scheduled && d.stopped() != "":
		d.complete(tidekeeperv1.OutcomeSkipped, d.stopped(), "the schedule was stopped before the restart was sent")
	case !TargetRef(active, d.spec).Equal(d.spec.TargetRef):
		d.complete(tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the target was edited before the restart was sent")
	case evicts(d.spec):
		d.complete(tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the method was edited before the restart was sent")
	case scheduled && !d.hasTick(tick):
		d.complete(tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the schedule or its windows were edited before the restart was sent, and no longer have this tick")
	case !scheduled && d.in.Now.Before(due):
		d.complete(tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonEdited, "the windows were edited before the restart was sent, and none is open now")
	case d.withdrawn(active):
		d.complete(tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonWithdrawn, "the request was withdrawn or replaced before the restart was sent")
	case d.in.Now.After(deadline):
		reason, message := d.notSent(blocked)
		d.complete(tidekeeperv1.OutcomeMissed, reason, message)
	case blocked != nil && blocked.permanent:
		d.complete(tidekeeperv1.OutcomeSkipped, blocked.reason, blocked.message)
	default:
		if blocked == nil && !d.takeSlot(active) {
			blocked = budgetExhausted()
		}
		if blocked != nil {
			d.waitsFor, d.waitsUntil = blocked, deadline
			d.wakeFor(blocked)
			d.wakeAt(deadline.Add(time.Second))
			return
		}
		d.sendLate(tick, due)
	}
}

// takeSlot reports whether a restart that was started but not sent has a slot. It may have outlived
// the one that it had.
func (d *decider) takeSlot(active *tidekeeperv1.ActiveRestart) bool {
	if !d.in.HasSlot {
		d.out.Needs, d.out.WaitingSince = NeedSlot, active.StartedTime.Time
	}
	return d.in.HasSlot
}

// sendLate sends a tick that was started but not sent. Its restart starts now: so long as it was
// not sent, nothing could progress.
func (d *decider) sendLate(tick, due time.Time) {
	if active := d.out.Status.Active; d.in.Now.Sub(active.StartedTime.Time) >= time.Second {
		active.StartedTime = metav1.Time{Time: d.in.Now}
	}
	d.out.Outlived = false
	d.sendNow(tick, due)
}

// notSent says why a restart that was started was not sent before its deadline.
func (d *decider) notSent(blocked *blocker) (reason, message string) {
	waited := d.waitedFor()
	switch {
	case blocked != nil:
		return blocked.reason, "not sent before the deadline: " + blocked.message
	case goneWaits[waited] != "":
		return waited, "not sent before the deadline: " + goneWaits[waited]
	case d.in.Refused != "":
		return tidekeeperv1.ReasonDeadlineExceeded, "not sent before the deadline: the API server refused it: " + d.in.Refused
	default:
		return tidekeeperv1.ReasonDeadlineExceeded, "the restart was not sent before its deadline"
	}
}

// complete ends the restart in progress. One that is skipped or missed was never sent.
func (d *decider) complete(outcome tidekeeperv1.Outcome, reason, message string) {
	status := &d.out.Status
	active := status.Active
	status.Active = nil
	d.out.Outlived = false
	if active.Trigger == tidekeeperv1.TriggerAge && reason != tidekeeperv1.ReasonTargetNotFound {
		// Of a workload that was deleted it says nothing about the next one.
		status.LastAgeTime = &metav1.Time{Time: active.ScheduledTime.Time}
	}
	record := tidekeeperv1.RestartRecord{
		ScheduledTime: active.ScheduledTime, Trigger: active.Trigger, Outcome: outcome, Reason: reason, Message: message,
	}
	sent := outcome == tidekeeperv1.OutcomeSucceeded || outcome == tidekeeperv1.OutcomeFailed
	if active.Trigger == tidekeeperv1.TriggerChange {
		record.ConfigHash = active.ConfigHash
		if sent {
			d.beginInterval(active)
		}
	}
	if sent {
		d.serveChange(active, reason)
	}
	switch outcome {
	case tidekeeperv1.OutcomeSucceeded:
		record.StartedTime = &active.StartedTime
		record.Pods, record.PodsLeftOut = d.in.Target.Updates, d.in.Target.Excluded
		if active.Eviction != nil {
			record.Pods = d.in.Target.Pods // Those below the partition of a StatefulSet, too.
		}
		record.PodStartup = podStartup(d.in.PodStartups, status.History)
		if status.ConsecutiveFailures < d.spec.FailureLimit {
			// A schedule that failures have stopped resumes when the spec is edited, and
			// not by a request.
			status.ConsecutiveFailures = 0
		}
		status.LastSuccessfulTime = &metav1.Time{Time: d.in.Now}
	case tidekeeperv1.OutcomeFailed:
		record.StartedTime = &active.StartedTime
		status.ConsecutiveFailures++
	}
	d.record(record)
}
