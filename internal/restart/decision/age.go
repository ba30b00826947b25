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
	// Oldest is the creation time of the oldest pod; zero if there is no pod.
	Oldest time.Time
	// Unwatched is set if the manager does not watch pods, so that their ages are unknown.
	Unwatched bool
	// Live is set if the pods were read from the API server and not from the cache.
	Live bool
}

// latestStart is the minimum time before the end of a window, in addition to the duration of a restart, at
// which a restart for the age of pods becomes due: other restarts may have to come first.
const latestStart = 10 * time.Minute

// ageTrigger restarts workloads whose pods are too old.
//
// status.nextAgeTime is the time at which that restart becomes due, or an earlier time. Pods are only ever
// replaced by younger pods, so the pods need not be read before then. The exception is an open window:
// younger pods can be due earlier, as they have to last until the next window opens.
type ageTrigger struct {
	state   *state
	windows schedule.Windows
	// ages is Input.PodAges.
	ages    *PodAges
	history *history
	wake    *alarm
	// tooOld is the tick, if one is due.
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

// pass does nothing: the next tick follows from the age of the pods.
func (t *ageTrigger) pass(*candidate) {}

// ended updates the trigger after a restart for the age of pods has ended.
func (t *ageTrigger) ended(active *tidekeeperv1.ActiveRestart, reason string) {
	if reason != tidekeeperv1.ReasonTargetNotFound {
		// The age counts from this tick on: a deleted workload says nothing about the pods of a later
		// workload of the same name.
		t.state.status.LastAgeTime = &metav1.Time{Time: active.ScheduledTime.Time}
	}
}

// edited updates the trigger after an edit of the spec.
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
			// The cache may not show the pods yet. It will when the oldest reaches the limit.
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

// wakeAtWindow sets the alarm for the opening of the next window, and reports whether a window is open now.
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

// limits reports whether the spec has a maximum pod age that can be enforced now.
func (t *ageTrigger) limits() bool {
	return t.state.spec.MaxPodAgeSeconds > 0 && t.state.replacesPods()
}

// possible implements [podTrigger]. Restarts by eviction are excluded, as their start sends no tick.
func (t *ageTrigger) possible() bool { return t.limits() && !evicts(t.state.spec) }

func (t *ageTrigger) lasts(active *tidekeeperv1.ActiveRestart) (bool, Need) {
	if need := t.confirm(); need != NeedNothing {
		return false, need
	}
	return t.tick().Equal(active.ScheduledTime.Time), NeedNothing
}

// tick returns the tick of the restart for the age of pods, possibly in the future; zero if there are no
// pods. Pods that the last restart did not replace count as created at that restart: another restart would
// not replace them either, or must wait as long again.
func (t *ageTrigger) tick() time.Time {
	if t.ages.Oldest.IsZero() {
		return time.Time{}
	}
	since := t.ages.Oldest.UTC().Truncate(time.Second)
	if !evicts(t.state.spec) {
		// After a restart by eviction, a changed template means nothing: existing pods keep the old template.
		for _, at := range marks(t.state.target, t.state.now) {
			since = later(since, at)
		}
	}
	if last := t.state.status.LastAgeTime; last != nil && !last.After(t.state.now) {
		since = later(since, last.UTC())
	}
	return ageTick(since, AgeLimit(t.state.restart), t.windows, t.history.lastDuration().Truncate(time.Second))
}

// message describes when a restart for the age of pods is due, or is "" if there is no age limit.
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

// AgeLimit returns the age of the oldest pod at which a restart becomes due: the limit of the spec, minus the
// part of the spread after this object's offset. It is 0 without a limit.
func AgeLimit(restart *tidekeeperv1.ScheduledRestart) time.Duration {
	limit := restart.Spec.GetMaxPodAge()
	spread := min(seconds(restart.Spec.SpreadSeconds), limit/2)
	return limit - spread + schedule.Spread(restart.Namespace, restart.Name, spread)
}

// ageTick returns the time at which a workload must be restarted if its oldest pod was created at the given
// time: when the pod reaches the limit, or, if no sufficiently long window is open then, in the last window
// before. In that window the earliest time is chosen at which new pods last until the next window opens;
// windows without such a time are skipped.
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
