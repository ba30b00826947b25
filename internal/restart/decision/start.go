// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// candidate is a tick that is due.
type candidate struct {
	tick    time.Time
	trigger tidekeeperv1.Trigger
	// earlier is the number of earlier ticks of the schedule that are due as well, the
	// first at first and the last at before. One restart is for all of them.
	earlier       int
	first, before time.Time
}

// scheduled returns the latest tick of the schedule that is due, or nil.
func (d *decider) scheduled() *candidate {
	if d.out.Status.NextScheduleTime == nil {
		return nil
	}
	first, upTo := d.out.Status.NextScheduleTime.UTC(), d.in.Now.Add(-d.in.Offset)
	if first.After(upTo) {
		return nil
	}
	c := &candidate{tick: first, trigger: tidekeeperv1.TriggerSchedule, first: first}
	if latest, between, ok := d.ticks().Latest(first, upTo); ok {
		c.tick, c.earlier, c.before = latest, between+1, first
		if before, _, ok := d.ticks().Latest(first, latest.Add(-time.Second)); ok {
			c.before = before
		}
	}
	return c
}

// start starts a restart for what is due, or decides otherwise about it. If both a
// request and a tick of the schedule are due, one restart serves both; until then each
// waits on its own.
func (d *decider) start() {
	blocked := d.blocker(d.in.Now)
	var due []*candidate
	for _, c := range []*candidate{d.requested(), d.scheduled()} {
		if c != nil && !d.resolved(c, blocked) {
			due = append(due, c)
		}
	}
	// Any other restart serves a change, and the age of the pods.
	if len(due) == 0 && d.changed != nil {
		due = append(due, d.changed)
	} else if len(due) == 0 && d.tooOld != nil {
		due = append(due, d.tooOld)
	}
	if len(due) == 0 {
		d.claimAhead()
		return
	}
	if blocked == nil && !d.in.HasSlot {
		if blocked = d.lastClosed(d.firstDue(due)); blocked == nil {
			blocked = budgetExhausted()
		}
		d.out.Needs, d.out.WaitingSince = NeedSlot, d.waitingSince(due)
	}
	if blocked != nil {
		d.wait(due, blocked)
		return
	}
	c := due[0]
	if d.needsLive(c.trigger) {
		return
	}
	if len(due) > 1 {
		first := due[1]
		if first.tick.After(c.tick) {
			c, first = first, c
		}
		d.resolve(first, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonSuperseded, "one restart serves this tick and the tick of "+formatTime(c.tick))
	}
	if evicts(d.spec) && !d.mayEvict(c) {
		return
	}
	d.claim(c)
}

// goneWaits says what a tick has waited for that leaves no other trace when it is gone.
var goneWaits = map[string]string{
	tidekeeperv1.ReasonFrozen:          "a Freeze was in force",
	tidekeeperv1.ReasonClosedByQuery:   "closed by a query of the manager's operator",
	tidekeeperv1.ReasonBudgetExhausted: "the restart budget was used up",
}

// resolved resolves a tick for which no restart is to be started, and reports whether
// it is one.
func (d *decider) resolved(c *candidate, blocked *blocker) bool {
	due, deadline := d.times(c.tick, c.trigger)
	late := d.in.Now.After(deadline)
	if late && blocked == nil {
		blocked = d.lastClosed(due)
	}
	switch {
	case d.alreadyRestarted(c):
		d.resolve(c, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonAlreadyRestarted, fmt.Sprintf("%s has been restarted since", d.in.Target))
	case blocked != nil && blocked.permanent:
		d.miss(c, tidekeeperv1.OutcomeSkipped, blocked.reason, blocked.message)
	case late && blocked != nil:
		d.miss(c, tidekeeperv1.OutcomeMissed, blocked.reason, "not started before the deadline: "+blocked.message)
	case late && goneWaits[d.waitedFor()] != "":
		d.miss(c, tidekeeperv1.OutcomeMissed, d.waitedFor(), "not started before the deadline: "+goneWaits[d.waitedFor()])
	case late && due.Before(d.in.LeadingSince) && deadline.Before(d.in.LeadingSince):
		d.miss(c, tidekeeperv1.OutcomeMissed, tidekeeperv1.ReasonDeadlineExceeded, "no manager was running before the deadline")
	case late:
		d.miss(c, tidekeeperv1.OutcomeMissed, tidekeeperv1.ReasonDeadlineExceeded, fmt.Sprintf(
			"a manager was running, but did not start the restart within %d s of the time at which it was due", d.spec.StartingDeadlineSeconds))
	default:
		return false
	}
	return true
}

// alreadyRestarted reports whether the target was restarted for the candidate or later.
func (d *decider) alreadyRestarted(c *candidate) bool {
	if d.in.Target == nil || evicts(d.spec) {
		// A pod template does not say how old the pods are.
		return false
	}
	_, restarted := restartedFor(d.in.Target, c.tick, d.in.Now)
	return restarted || sentFor(d.in.Target, c.tick, d.in.Now)
}

// waitingSince returns since when candidates count as waiting for a slot: a request since
// now, as its author chooses its time; any other tick since it was due; and none before the
// last record of this object.
func (d *decider) waitingSince(due []*candidate) time.Time {
	since := d.in.Now
	for _, c := range due {
		if c.trigger != tidekeeperv1.TriggerRequest {
			since, _ = d.times(c.tick, c.trigger)
		}
	}
	if last, ok := d.lastRecorded(); ok && last.After(since) && last.Before(d.in.Now) {
		since = last
	}
	return since
}

// firstDue returns when the first of the candidates was due.
func (d *decider) firstDue(due []*candidate) (first time.Time) {
	for _, c := range due {
		if at, _ := d.times(c.tick, c.trigger); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// wait has ticks wait for a blocker to go. Of those of the schedule only the latest
// waits; the earlier ones are missed.
func (d *decider) wait(due []*candidate, blocked *blocker) {
	d.waitsFor = blocked
	d.wakeFor(blocked)
	quiet := d.quietUntil()
	for _, c := range due {
		_, deadline := d.times(c.tick, c.trigger)
		if deadline.IsZero() {
			continue
		}
		if d.waitsUntil.IsZero() || deadline.Before(d.waitsUntil) {
			d.waitsUntil = deadline
		}
		d.wakeAt(later(deadline.Add(time.Second), quiet))
		if c.trigger == tidekeeperv1.TriggerRequest {
			continue
		}
		if c.earlier > 0 && quiet.IsZero() {
			d.recordMiss(tidekeeperv1.RestartRecord{
				ScheduledTime: metav1.Time{Time: c.before}, Trigger: c.trigger, Outcome: tidekeeperv1.OutcomeMissed,
				Reason: blocked.reason, Message: "not started before a later tick was due: " + blocked.message, EarlierTicks: int32(c.earlier - 1),
			})
			d.out.Status.NextScheduleTime = &metav1.Time{Time: c.tick}
		}
		if next, ok := d.ticks().Next(c.tick); ok {
			d.wakeAt(later(next.Add(d.in.Offset), d.quietUntil()))
		}
	}
}

// wakeFor wakes when a blocker may have gone.
func (d *decider) wakeFor(b *blocker) {
	for _, at := range []time.Time{b.until, b.again} {
		if !at.IsZero() {
			d.wakeAt(at)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// advancePast leaves a tick behind, as it is decided.
func (d *decider) advancePast(c *candidate) {
	d.noteTarget()
	if c.trigger == tidekeeperv1.TriggerRequest {
		d.out.Status.LastRequestTime = &metav1.Time{Time: c.tick}
	}
	if c.trigger == tidekeeperv1.TriggerSchedule {
		d.advance(c.tick)
	}
}

// waitedFor returns what a tick waited for according to the last status, or "".
func (d *decider) waitedFor() string {
	ready := meta.FindStatusCondition(d.in.Restart.Status.Conditions, tidekeeperv1.ConditionReady)
	if ready == nil {
		return ""
	}
	if slices.Contains(tidekeeperv1.WaitReasons, ready.Reason) {
		return ready.Reason
	}
	return ""
}
