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

// PodAges are the known ages of the target's pods.
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

// ageTrigger restarts workloads whose pods are too old.
//
// status.nextAgeTime is when that is due, or earlier: pods are only replaced by younger pods, so that
// no pod has to be looked at before. Only if a window is open, younger pods can be due earlier, as
// they have to last until the next window opens.
type ageTrigger struct {
	state   *state
	windows schedule.Windows
	// ages is as in the input.
	ages    *PodAges
	history *history
	wake    *alarm
	// tooOld is the tick, if it is due.
	tooOld *candidate
}

func (t *ageTrigger) times(tick time.Time) (due, deadline time.Time) {
	return opensAt(t.windows, tick), time.Time{}
}

func (t *ageTrigger) candidate() *candidate { return t.tooOld }

func (t *ageTrigger) confirm() Need {
	if t.ages == nil || !t.ages.Live {
		return NeedLivePodAges
	}
	return NeedNothing
}

// pass has nothing to do: the age of the pods says when the next restart is due.
func (t *ageTrigger) pass(*candidate) {}

// ended takes in that a restart for the age of pods has ended.
func (t *ageTrigger) ended(active *tidekeeperv1.ActiveRestart, reason string) {
	if reason != tidekeeperv1.ReasonTargetNotFound {
		// The age trigger counts from this tick: a deleted workload says nothing about the age of the
		// pods of a later workload with its name.
		t.state.status.LastAgeTime = &metav1.Time{Time: active.ScheduledTime.Time}
	}
}

// edited takes in an edit of the spec.
func (t *ageTrigger) edited(retargeted bool) {
	t.state.status.NextAgeTime = nil
	if retargeted {
		t.state.status.LastAgeTime = nil
	}
}

// observe finds out when a restart for the age of the pods is due. It returns the fact that this
// depends on. ended says that a restart has ended just now, and rolling that the pods are being replaced.
func (t *ageTrigger) observe(ended, rolling bool) Need {
	status, now := t.state.status, t.state.now
	if !t.limits() || t.state.target.Pods == 0 {
		status.NextAgeTime = nil
		return NeedNothing
	}
	open := t.wakeAtWindow()
	switch next := status.NextAgeTime; {
	case next != nil && !ended && !open && next.After(now):
		t.wake.set(next.Time)
		return NeedNothing
	case next != nil && !ended && rolling:
		// The pods change all the time.
		t.tooOld = newCandidate(t, tidekeeperv1.TriggerAge, next.UTC())
		return NeedNothing
	case t.ages == nil:
		return NeedPodAges
	}
	tick := t.tick()
	if tick.IsZero() {
		status.NextAgeTime = nil
		if !t.ages.Unwatched {
			// The cache may not show the pods yet: it does when the first is too old.
			t.wake.set(now.Add(AgeLimit(t.state.restart)))
		}
		return NeedNothing
	}
	c := newCandidate(t, tidekeeperv1.TriggerAge, tick)
	if next := status.NextAgeTime; next == nil || ended || !next.After(now) || c.due.Before(next.Time) {
		status.NextAgeTime = &metav1.Time{Time: c.due}
	}
	if c.due.After(now) {
		t.wake.set(c.due)
	} else {
		t.tooOld = c
	}
	return NeedNothing
}

// wakeAtWindow wakes when the next window opens, and reports whether a window is open now.
func (t *ageTrigger) wakeAtWindow() (open bool) {
	if len(t.windows) == 0 {
		return false
	}
	now := t.state.now
	closes, open := t.windows.ClosesAt(now)
	if !open {
		closes = now
	}
	if opens, ok := t.windows.OpensAt(closes); ok && opens.After(now) {
		t.wake.set(opens)
	}
	return open
}

// limits reports whether pods that are too old are to be restarted, and can be.
func (t *ageTrigger) limits() bool {
	return t.state.spec.MaxPodAgeSeconds > 0 && t.state.replacesPods()
}

// possible excludes restarts by eviction, which are never started without being sent.
func (t *ageTrigger) possible() bool { return t.limits() && !evicts(t.state.spec) }

func (t *ageTrigger) lasts(active *tidekeeperv1.ActiveRestart) (bool, Need) {
	if need := t.confirm(); need != NeedNothing {
		return false, need
	}
	return t.tick().Equal(active.ScheduledTime.Time), NeedNothing
}

// tick returns the tick of the restart for the age of the pods, which may be in the future;
// zero if there are no pods. The last restart counts as the creation of the pods that it has
// not replaced: another restart would not replace them either, or has to wait for as long again.
func (t *ageTrigger) tick() time.Time {
	if t.ages.Oldest.IsZero() {
		return time.Time{}
	}
	since := t.ages.Oldest.UTC().Truncate(time.Second)
	if !evicts(t.state.spec) {
		// Of a restart by eviction, a template that has changed says nothing: pods are left as they are.
		for _, at := range marks(t.state.target, t.state.now) {
			since = later(since, at)
		}
	}
	if last := t.state.status.LastAgeTime; last != nil && !last.After(t.state.now) {
		since = later(since, last.UTC())
	}
	return ageTick(since, AgeLimit(t.state.restart), t.windows, t.history.lastDuration().Truncate(time.Second))
}

// message says when a restart for the age of the pods is due, or is "" if their age does not matter.
func (t *ageTrigger) message() string {
	if t.state.spec.MaxPodAgeSeconds == 0 {
		return ""
	}
	message := fmt.Sprintf("no pod may be older than %s", t.state.spec.GetMaxPodAge())
	if next := t.state.status.NextAgeTime; next != nil {
		message += ", so that a restart is due at " + formatTime(next.Time) + " or later"
	}
	return message
}

// AgeLimit returns the age of the oldest pod at which a restart is due: that of the spec, less
// the rest of the spread after the place of the object. It is 0 if there is no limit.
func AgeLimit(restart *tidekeeperv1.ScheduledRestart) time.Duration {
	limit := restart.Spec.GetMaxPodAge()
	spread := min(seconds(restart.Spec.SpreadSeconds), limit/2)
	return limit - spread + schedule.Spread(restart.Namespace, restart.Name, spread)
}

// ageTick returns when a workload is to be restarted whose oldest pod is as old as if it had
// been created at a time. That is when it reaches the limit. If no window is open then that is
// long enough for a restart, it is in the last window before: as early as the new pods last
// until the next window opens. A window in which that is not possible is left out.
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
