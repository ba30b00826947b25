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

// PodAges describes the ages of the target's pods, as far as they are known.
type PodAges struct {
	// Oldest is the creation time of the oldest pod; zero if there is no pod, or if Unwatched is
	// true.
	Oldest time.Time
	// Unwatched is true if the ages are unknown because the manager does not watch pods.
	Unwatched bool
	// Live is true if the pods were read from the API server instead of the cache.
	Live bool
}

// latestStart is a reserve at the end of a window. A restart for the age of pods becomes due at
// least this much before the last moment at which it could still end within the window, in case
// other restarts have to run first. In a window shorter than 40 minutes, the reserve is a quarter
// of the window.
const latestStart = 10 * time.Minute

// ageTrigger restarts workloads whose pods are too old.
//
// status.nextAgeTime is the time at which the restart becomes due, or an earlier time. Before then,
// the ages of the pods need not be read, since pods are only replaced with younger pods. The
// exception is an open window: a restart may be due earlier in it, if the pods would become too old
// before the next window opens.
type ageTrigger struct {
	state   *state
	windows schedule.Windows
	// ages describes the ages of the target's pods; nil if unknown. See [Input.PodAges].
	ages    *PodAges
	history *history
	wake    *alarm
	// tooOld is the restart for the age of pods that is due now; nil if none is due.
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

// pass does nothing after a restart, since the next due time follows from the ages of the pods.
func (t *ageTrigger) pass(*candidate) {}

// ended records the end of a restart whose trigger was the age of pods. reason is the reason in the
// history entry of the restart.
func (t *ageTrigger) ended(active *tidekeeperv1.ActiveRestart, reason string) {
	if reason != tidekeeperv1.ReasonTargetNotFound {
		// Pods that the restart did not replace count as created at its scheduled time. If the
		// workload was deleted, they do not, since another workload of the same name has other
		// pods.
		t.state.status.LastAgeTime = &metav1.Time{Time: active.ScheduledTime.Time}
	}
}

// edited resets the due time of the restart for the age of pods after an edit of the spec.
// retargeted is true if the edit has changed the target.
func (t *ageTrigger) edited(retargeted bool) {
	t.state.status.NextAgeTime = nil
	if retargeted {
		t.state.status.LastAgeTime = nil
	}
}

// observe determines when a restart for the age of the pods is due. It returns the next fact that
// the decision needs for this. ended is true if a restart has just ended. rolling is true if the
// pods are being replaced.
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
		// The ages of the pods keep changing while the pods are being replaced, so use the due time
		// in the status instead.
		t.tooOld = newCandidate(t, tidekeeperv1.TriggerAge, next.UTC())
		return NeedNothing
	case t.ages == nil:
		return NeedPodAges
	}
	tick := t.tick()
	if tick.IsZero() {
		status.NextAgeTime = nil
		if !t.ages.Unwatched {
			// The cache may not show the pods yet. Decide again when the oldest pod can have
			// reached the age limit; the cache shows the pods by that time.
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

// wakeAtWindow schedules the next decision for the time at which the next window opens, and reports
// whether a window is open now. It returns false if the spec has no windows.
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

// limits reports whether the spec has a maximum pod age that can currently be enforced.
func (t *ageTrigger) limits() bool {
	return t.state.spec.MaxPodAgeSeconds > 0 && t.state.replacesPods()
}

// possible implements [podTrigger]. It returns false for restarts by eviction, since no tick is
// sent for them.
func (t *ageTrigger) possible() bool { return t.limits() && !evicts(t.state.spec) }

func (t *ageTrigger) lasts(active *tidekeeperv1.ActiveRestart) (bool, Need) {
	if need := t.confirm(); need != NeedNothing {
		return false, need
	}
	return t.tick().Equal(active.ScheduledTime.Time), NeedNothing
}

// tick returns the scheduled time of the restart for the age of pods, which may be in the future.
// It is zero if there are no pods. Pods that the last restart did not replace count as created at
// that restart, so that they do not cause another restart immediately.
func (t *ageTrigger) tick() time.Time {
	if t.ages.Oldest.IsZero() {
		return time.Time{}
	}
	since := t.ages.Oldest.UTC().Truncate(time.Second)
	if !evicts(t.state.spec) {
		// For restarts by eviction, the restart times in the target's annotations do not count,
		// since existing pods keep an old pod template until they are evicted.
		for _, at := range marks(t.state.target, t.state.now) {
			since = later(since, at)
		}
	}
	if last := t.state.status.LastAgeTime; last != nil && !last.After(t.state.now) {
		since = later(since, last.UTC())
	}
	return ageTick(since, AgeLimit(t.state.restart), t.windows, t.history.lastDuration().Truncate(time.Second))
}

// message describes when a restart for the age of pods is due; "" without a maximum pod age.
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

// AgeLimit returns the age of the oldest pod at which a restart becomes due; 0 without a maximum
// pod age. Without spec.spreadSeconds, it is the maximum pod age of the spec. With it, each
// ScheduledRestart gets an earlier age, so that the restarts are distributed over that period.
func AgeLimit(restart *tidekeeperv1.ScheduledRestart) time.Duration {
	limit := restart.Spec.GetMaxPodAge()
	spread := min(seconds(restart.Spec.SpreadSeconds), limit/2)
	return limit - spread + schedule.Spread(restart.Namespace, restart.Name, spread)
}

// ageTick returns the time at which a workload must be restarted if "since" is the creation time of
// its oldest pod, and "took" is the duration of a restart. Usually this is the time at which the
// pod reaches the limit. If no window is open for the duration of a restart then, it is the
// earliest time in the previous window at which new pods last until the next window opens. If there
// is no such time, it is the time at which the next window opens.
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
