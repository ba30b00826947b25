// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// PodAges is what is known of the ages of the target's pods.
type PodAges struct {
	// Oldest is when the oldest pod was created; zero if there is none.
	Oldest time.Time
	// Unwatched says that the manager watches no pods, so that nothing is known of them.
	Unwatched bool
	// Live says that the pods were read from the API server and not from the cache.
	Live bool
}

// latestStart is how long before a window closes a restart for the age of pods is due at the
// latest, beside the time that it takes: others may have to come first.
const latestStart = 10 * time.Minute

// observeAge finds out when a restart for the age of the pods is due. It returns false if
// that needs a look at the pods.
//
// status.nextAgeTime is that time, or an earlier one: pods are only replaced by younger ones,
// so that no pod has to be looked at before it has come. Only if a window is open, younger pods
// can be due earlier, as they have to last until the next one opens. ended says that a restart
// has ended just now.
func (d *decider) observeAge(ended bool) bool {
	status, now := &d.out.Status, d.in.Now
	if !d.limitsAge() || d.in.Target.Pods == 0 {
		status.NextAgeTime = nil
		return true
	}
	open := false
	if len(d.in.Windows) > 0 {
		var closes time.Time
		if closes, open = d.in.Windows.ClosesAt(now); !open {
			closes = now
		}
		if opens, ok := d.in.Windows.OpensAt(closes); ok && opens.After(now) {
			d.wakeAt(opens)
		}
	}
	switch next := status.NextAgeTime; {
	case next != nil && !ended && !open && next.After(now):
		d.wakeAt(next.Time)
		return true
	case next != nil && !ended && d.blocked(tidekeeperv1.ReasonTargetRolling):
		// Its pods are being replaced, and change all the time.
		d.tooOld = &candidate{tick: next.UTC(), trigger: tidekeeperv1.TriggerAge, first: next.UTC()}
		return true
	case d.in.PodAges == nil:
		d.out.Needs = NeedPodAges
		return false
	}
	tick := d.ageTick()
	if tick.IsZero() {
		status.NextAgeTime = nil
		if !d.in.PodAges.Unwatched {
			// The cache may not show the pods yet: it does when the first is too old.
			d.wakeAt(now.Add(AgeLimit(d.in.Restart)))
		}
		return true
	}
	due, _ := d.times(tick, tidekeeperv1.TriggerAge)
	if next := status.NextAgeTime; next == nil || ended || !next.After(now) || due.Before(next.Time) {
		status.NextAgeTime = &metav1.Time{Time: due}
	}
	if due.After(now) {
		d.wakeAt(due)
	} else {
		d.tooOld = &candidate{tick: tick, trigger: tidekeeperv1.TriggerAge, first: tick}
	}
	return true
}

// blocked reports whether a reason keeps the target from being restarted now.
func (d *decider) blocked(reason string) bool {
	b := d.blocker(d.in.Now)
	return b != nil && b.reason == reason
}

// limitsAge reports whether pods that are too old are to be restarted, and can be.
func (d *decider) limitsAge() bool {
	return d.spec.MaxPodAgeSeconds > 0 && d.stopped() == "" && d.in.Target != nil && !d.in.Target.Deleting && !d.in.Polled &&
		(evicts(d.spec) || !d.in.Target.OnDelete && !d.in.Target.Partitioned)
}

// AgeLimit returns the age of the oldest pod at which a restart is due: that of the spec, less
// what is left of the spread after the place of the object. It is 0 if there is no limit.
func AgeLimit(restart *tidekeeperv1.ScheduledRestart) time.Duration {
	limit := restart.Spec.GetMaxPodAge()
	spread := min(seconds(restart.Spec.SpreadSeconds), limit/2)
	return limit - spread + schedule.Spread(restart.Namespace, restart.Name, spread)
}

// ageTick returns the tick of the restart for the age of the pods, which may be in the future;
// zero if there are no pods. The last restart counts as the creation of the pods that it has
// not replaced: another one would not replace them either, or has to wait for as long again.
func (d *decider) ageTick() time.Time {
	if d.in.PodAges.Oldest.IsZero() {
		return time.Time{}
	}
	since := d.in.PodAges.Oldest.UTC().Truncate(time.Second)
	marks := []string{d.in.Target.RestartedAt, d.in.Target.LastTick}
	if evicts(d.spec) {
		// A template that has changed says nothing of pods that are left as they are.
		marks = nil
	}
	for _, mark := range marks {
		if at, ok := parseTime(mark); ok && !at.After(d.in.Now.Add(clockSkew)) {
			since = later(since, at.UTC())
		}
	}
	if last := d.out.Status.LastAgeTime; last != nil && !last.After(d.in.Now) {
		since = later(since, last.UTC())
	}
	return ageTick(since, AgeLimit(d.in.Restart), d.in.Windows, d.lastDuration().Truncate(time.Second))
}

// ageTick returns when a workload is to be restarted whose oldest pod is as old as if it had
// been created at a time. That is when it reaches the limit. If no window is open then that is
// long enough for a restart, it is in the last window before: as early as the new pods last
// until the next one opens. A window in which that is not possible is left out.
func ageTick(since time.Time, limit time.Duration, windows schedule.Windows, took time.Duration) time.Time {
	old := since.Add(limit)
	if len(windows) == 0 {
		return old
	}
	opened, closes, ok := windows.Around(old)
	if !ok || !closes.Before(old.Add(took)) && closes.After(old) {
		return old
	}
	next, ok := windows.OpensAt(closes)
	if !ok {
		return old
	}
	tick := later(next.Add(-limit), opened)
	if latest := later(closes.Add(-took-min(latestStart, closes.Sub(opened)/4)), opened); latest.Before(tick) {
		tick = latest
	}
	if tick = tick.Truncate(time.Second); tick.After(since) {
		return tick
	}
	return next
}

// sendForAge sends a tick of the trigger Age that was started but not sent, if it still can and
// has to be. Otherwise the start is taken back without a record: nothing has happened, and
// pods that are too old are restarted when that is possible.
func (d *decider) sendForAge(tick time.Time) {
	active := d.out.Status.Active
	due, _ := d.times(tick, active.Trigger)
	switch {
	case !d.limitsAge() || evicts(d.spec) || !TargetRef(active, d.spec).Equal(d.spec.TargetRef) || d.in.Now.Before(due) || d.blocker(d.in.Now) != nil:
		d.out.Status.Active = nil
	case !d.takeSlot(active):
		d.out.Status.Active = nil
	case d.in.PodAges == nil || !d.in.PodAges.Live:
		d.out.Needs = NeedLivePodAges
	default:
		if !d.ageTick().Equal(tick) {
			d.out.Status.Active = nil
			return
		}
		d.sendLate(tick, due)
	}
}

// ageMessage says what the age of the pods will trigger, or "".
func (d *decider) ageMessage() string {
	if d.spec.MaxPodAgeSeconds == 0 {
		return ""
	}
	message := fmt.Sprintf("no pod may be older than %s", d.spec.GetMaxPodAge())
	if next := d.out.Status.NextAgeTime; next != nil {
		message += ", so that a restart is due at " + formatTime(next.Time) + " or later"
	}
	return message
}
