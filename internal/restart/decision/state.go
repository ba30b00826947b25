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

// state holds the facts that the triggers and the steps of a decision share: a ScheduledRestart,
// its target and the time. Each field of the next status is written only by the type that owns the
// field. See owners_test.go.
type state struct {
	// restart is the ScheduledRestart with the status before the decision. spec is its spec.
	restart *tidekeeperv1.ScheduledRestart
	spec    *tidekeeperv1.ScheduledRestartSpec
	// status is the next status, which the decision modifies.
	status *tidekeeperv1.ScheduledRestartStatus
	// target is the target workload; nil if it does not exist. polled is true if its changes cause
	// no events.
	target *workload.State
	polled bool
	now    time.Time
	// invalid is the error if the schedule or the windows are invalid; nil if they are valid.
	// orphaned is true if the workload whose opt-in created the ScheduledRestart no longer exists.
	invalid  error
	orphaned bool
}

// stopped returns the reason for which the schedule does not run; "" if it runs.
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

// replacesPods reports whether a restart that is triggered by the state of the pods, such as their
// age, can replace them. The schedule must run. The target must exist, replace its pods in a
// restart, and report changes by events.
func (s *state) replacesPods() bool {
	t := s.target
	return s.stopped() == "" && t != nil && !t.Deleting && !s.polled && (evicts(s.spec) || !t.OnDelete && !t.Partitioned)
}

// retargeted reports whether the spec names another target than the target of the restart in
// progress.
func (s *state) retargeted(active *tidekeeperv1.ActiveRestart) bool {
	return !TargetRef(active, s.spec).Equal(s.spec.TargetRef)
}

// restarted reports whether the target was restarted for the given tick (scheduled time) or a later
// time.
func (s *state) restarted(tick time.Time) bool {
	if s.target == nil || evicts(s.spec) {
		// For restarts by eviction, the pod template does not show the age of the pods.
		return false
	}
	_, restarted := restartedFor(s.target, tick, s.now)
	return restarted || sentFor(s.target, tick, s.now)
}

// waitedFor returns the reason for which a restart was waiting according to the status before the
// decision; "" if no restart was waiting.
func (s *state) waitedFor() string {
	ready := meta.FindStatusCondition(s.restart.Status.Conditions, tidekeeperv1.ConditionReady)
	if ready == nil || !slices.Contains(tidekeeperv1.WaitReasons, ready.Reason) {
		return ""
	}
	return ready.Reason
}

// waiting holds the reason for which the restart for a due tick waits, and the deadline of the
// tick. The reason is nil if no restart waits.
type waiting struct {
	blocker *blocker
	until   time.Time
}

// alarm is the time of the next decision, unless an event causes an earlier one; zero means never.
type alarm struct{ at time.Time }

// set schedules the next decision for the given time, unless it is already scheduled for an earlier
// time.
func (a *alarm) set(at time.Time) {
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
}

// setFor schedules the next decision for the time at which the blocker ends or must be checked
// again. If no such time is known, it does nothing.
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
