// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// state has the facts that the triggers and the steps of a decision share: a ScheduledRestart, its target and
// the time. Each field of the next status is written by the type that owns the field, see owners_test.go.
type state struct {
	// restart is the ScheduledRestart with the status from before the decision, and spec is its spec.
	restart *tidekeeperv1.ScheduledRestart
	spec    *tidekeeperv1.ScheduledRestartSpec
	// status is the next status.
	status *tidekeeperv1.ScheduledRestartStatus
	// target is the workload, nil if it does not exist. polled is set if its changes cause no events.
	target *workload.State
	polled bool
	now    time.Time
	// invalid is the error in the schedule or in the windows, nil if there is none. orphaned is the
	// result of [Input.Orphaned].
	invalid  error
	orphaned bool
}

// stopped returns the reason for which the schedule does not run, or "".
func (s *state) stopped() string {
	switch {
	case s.invalid != nil:
		return tidekeeperv1.ReasonInvalidSchedule
	case s.orphaned:
		return tidekeeperv1.ReasonOrphaned
	case s.status.ConsecutiveFailures >= s.spec.FailureLimit:
		return tidekeeperv1.ReasonFailureLimit
	case s.spec.Suspend:
		return tidekeeperv1.ReasonSuspended
	default:
		return ""
	}
}

// replacesPods reports whether a restart for the sake of the pods, such as for their age, can replace them:
// the schedule runs, and the target has pods and reports their changes.
func (s *state) replacesPods() bool {
	t := s.target
	return s.stopped() == "" && t != nil && !t.Deleting && !s.polled && (evicts(s.spec) || !t.OnDelete && !t.Partitioned)
}

// retargeted reports whether the spec names another target than that of the restart in progress.
func (s *state) retargeted(active *tidekeeperv1.ActiveRestart) bool {
	return !TargetRef(active, s.spec).Equal(s.spec.TargetRef)
}

// restarted reports whether the target was restarted for the tick or later.
func (s *state) restarted(tick time.Time) bool {
	if s.target == nil || evicts(s.spec) {
		// A pod template does not show how old the pods are.
		return false
	}
	_, restarted := restartedFor(s.target, tick, s.now)
	return restarted || sentFor(s.target, tick, s.now)
}

// waitedFor returns the reason for which a tick waited, according to the last status, or "".
func (s *state) waitedFor() string {
	ready := meta.FindStatusCondition(s.restart.Status.Conditions, tidekeeperv1.ConditionReady)
	if ready == nil || !slices.Contains(tidekeeperv1.WaitReasons, ready.Reason) {
		return ""
	}
	return ready.Reason
}

// waiting has the blocker that a due tick waits for, nil if no tick waits, and the deadline of the tick.
type waiting struct {
	blocker *blocker
	until   time.Time
}

// alarm is the time of the next decision if no event happens before; zero means never.
type alarm struct{ at time.Time }

// set sets the alarm to a time, unless it is set to an earlier time.
func (a *alarm) set(at time.Time) {
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
}

// setFor sets the alarm for the time at which a blocker may be gone.
func (a *alarm) setFor(b *blocker) {
	for _, at := range []time.Time{b.until, b.again} {
		if !at.IsZero() {
			a.set(at)
		}
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func formatTime(t time.Time) string { return workload.FormatTime(t) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
