// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// claim starts the restart for a tick: first the status says so, then the tick is sent.
// After a crash in between, [decider.resend] sends it. A tick that is not due yet is sent
// when it is.
func (d *decider) claim(c *candidate) {
	d.recordSkippedTicks(c)
	ref := d.spec.TargetRef
	due, _ := d.times(c.tick, c.trigger)
	started := later(due, d.in.Now)
	d.out.Status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: metav1.Time{Time: c.tick}, StartedTime: metav1.Time{Time: started}, Trigger: c.trigger,
		TargetUID: string(d.in.Target.UID), TargetRef: &ref,
	}
	d.noteConfig()
	d.out.Status.LastScheduleTime = &metav1.Time{Time: c.tick}
	d.out.Status.ConsecutiveMisses = 0
	d.advancePast(c)
	if started.After(d.in.Now) {
		d.wakeAt(started)
		return
	}
	if evicts(d.spec) {
		d.startEviction(due)
		return
	}
	d.send(due)
}

// send sends the tick of the restart in progress.
func (d *decider) send(due time.Time) {
	active := d.out.Status.Active
	d.sendNow(active.ScheduledTime.Time, due)
	d.wakeAt(active.StartedTime.Add(seconds(d.spec.ProgressDeadlineSeconds)))
	if d.in.SlotAge > 0 {
		d.wakeAt(active.StartedTime.Add(d.in.SlotAge))
	}
}

// claimAhead claims a tick that is due soon, so that sending it is all that is left to do
// when it is due. Whatever is in its way now may be gone by then.
func (d *decider) claimAhead() {
	c := d.upcoming()
	if c == nil || d.in.ClaimAhead == 0 || evicts(d.spec) {
		return
	}
	due, _ := d.times(c.tick, c.trigger)
	if from := due.Add(-d.in.ClaimAhead); d.in.Now.Before(from) {
		d.wakeAt(from)
		return
	}
	switch {
	case !due.After(d.in.Now):
		// It is overdue, and is recorded as missed later, see [decider.quietUntil].
	case d.blocker(due) != nil || d.alreadyRestarted(c):
	case !d.in.HasSlot:
		d.out.Needs = NeedSpareSlot
	default:
		without := d.in
		without.ClaimAhead = 0
		d.out.BeforeClaim = new(Decide(without).Status)
		d.claim(c)
	}
}

// upcoming returns the next tick that is not due yet, of the schedule or requested, or nil.
// If both are due at the same time there is none: one restart serves them then.
func (d *decider) upcoming() *candidate {
	var next *candidate
	var first time.Time
	if tick := d.out.Status.NextScheduleTime; tick != nil {
		next = &candidate{tick: tick.UTC(), trigger: tidekeeperv1.TriggerSchedule, first: tick.UTC()}
		first, _ = d.times(next.tick, next.trigger)
	}
	at := d.requestedTime()
	if at.IsZero() {
		return next
	}
	due, _ := d.times(at, tidekeeperv1.TriggerRequest)
	switch {
	case next != nil && first.Before(due):
		return next
	case next != nil && first.Equal(due):
		return nil
	default:
		return &candidate{tick: at, trigger: tidekeeperv1.TriggerRequest, first: at}
	}
}

// clockStep is how far a clock must be set back for a claim to be taken back.
const clockStep = time.Minute

// takesBack reports whether this process has claimed a tick that must not be sent any more:
// what a restart depends on has changed since, or has changed when it is due. The claim is
// then taken back, and the tick decided as if it had never been claimed.
func (d *decider) takesBack() bool {
	restart := d.in.Restart
	active := restart.Status.Active
	if d.in.BeforeClaim == nil {
		return false
	}
	due := active.StartedTime.Time
	_, deadline := d.times(active.ScheduledTime.Time, active.Trigger)
	switch {
	case restart.Generation != restart.Status.ObservedGeneration, d.withdrawn(active):
		return true
	case d.in.Now.Before(due):
		return d.in.Now.Before(due.Add(-d.in.ClaimAhead - clockStep))
	case d.in.Now.After(deadline), d.blocker(d.in.Now) != nil, string(d.in.Target.UID) != active.TargetUID:
		return true
	default:
		return d.alreadyRestarted(&candidate{tick: active.ScheduledTime.Time})
	}
}

// withdrawn reports whether the restart in progress was requested by an annotation that asks
// for another time now, or for none.
func (d *decider) withdrawn(active *tidekeeperv1.ActiveRestart) bool {
	if active.Trigger != tidekeeperv1.TriggerRequest {
		return false
	}
	at, _ := RequestedTime(d.in.Restart, d.in.Now)
	return !at.Equal(active.ScheduledTime.Time)
}

// keepClaim waits until a tick that this process has claimed is due, and sends it then. Until
// then nothing else is written to the status: it would be lost if the claim is taken back.
func (d *decider) keepClaim() {
	d.out.Unchanged = true
	active := d.out.Status.Active
	due := active.StartedTime.Time
	if d.in.Now.Before(due) {
		d.wakeAt(due)
		return
	}
	if d.in.Now.Sub(due) >= lateSend {
		d.out.Unchanged = false
		active.StartedTime = metav1.Time{Time: d.in.Now}
	}
	d.send(due)
}

// lateSend is how much later than planned a tick must be sent for its restart to count as started
// only then, which takes a write of the status first.
const lateSend = 10 * time.Second
