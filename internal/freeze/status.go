// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// countInterval is the minimum time between two writes of a status in which only the counts in
// status.heldBack have changed.
const countInterval = 10 * time.Second

// newStatus returns the desired status of a Freeze at the time now. held counts the objects that
// the Freeze currently holds back.
func newStatus(f *tidekeeperv1.Freeze, held tidekeeperv1.HeldBack, now time.Time) tidekeeperv1.FreezeStatus {
	p := period.Of(f)
	status := *f.Status.DeepCopy()
	status.ObservedGeneration = f.Generation
	if p.Contains(now) {
		// Missed ticks (scheduled times of restarts) may have been dropped from the histories of
		// their ScheduledRestarts since they were counted, so the count must not decrease.
		held.MissedTicks = max(held.MissedTicks, status.HeldBack.MissedTicks)
		status.HeldBack = held
	}
	set := func(conditionType string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: conditionType, Status: is, Reason: reason, Message: message,
			ObservedGeneration: f.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	phase, message := phaseOf(p, now)
	if _, err := period.Selector(f); err != nil {
		message = fmt.Sprintf("%s; it applies to all namespaces, because its selector is invalid: %s", message, err)
		set(tidekeeperv1.ConditionReady, metav1.ConditionFalse, tidekeeperv1.ReasonInvalidSelector, message)
		set(tidekeeperv1.ConditionStalled, metav1.ConditionTrue, tidekeeperv1.ReasonInvalidSelector, message)
	} else {
		set(tidekeeperv1.ConditionReady, metav1.ConditionTrue, phase, message)
		// By the convention of kstatus, the condition Stalled exists only while it is True.
		meta.RemoveStatusCondition(&status.Conditions, tidekeeperv1.ConditionStalled)
	}
	inForce := metav1.ConditionFalse
	if phase == tidekeeperv1.ReasonInForce {
		inForce = metav1.ConditionTrue
	}
	set(tidekeeperv1.ConditionInForce, inForce, phase, message)
	return status
}

// phaseOf returns the phase of a freeze (Pending, InForce or Ended) as a condition reason, with a
// message that does not change during the phase.
func phaseOf(p period.Period, now time.Time) (reason, message string) {
	from, until := p.From.UTC().Format(time.RFC3339), p.Until.UTC().Format(time.RFC3339)
	switch {
	case !now.Before(p.Until):
		return tidekeeperv1.ReasonEnded, "ended at " + until
	case !p.HasBegun(now):
		return tidekeeperv1.ReasonPending, fmt.Sprintf("begins at %s, and ends at %s", from, until)
	default:
		return tidekeeperv1.ReasonInForce, fmt.Sprintf("in force until %s: no restart is started in the selected namespaces, and no node gets a NoExecute taint of a pool", until)
	}
}

// nextChange returns the time of the next phase change of a freeze; zero if there is none.
func nextChange(p period.Period, now time.Time) time.Time {
	switch {
	case !p.HasBegun(now) && now.Before(p.Until):
		return p.From
	case now.Before(p.Until):
		return p.Until
	default:
		return time.Time{}
	}
}

// whenToWrite returns the time at which the status "after" should be written, which may be now. It
// is zero if the status equals "before". last is the time of the previous write.
func whenToWrite(before, after *tidekeeperv1.FreezeStatus, last, now time.Time) time.Time {
	if equality.Semantic.DeepEqual(before, after) {
		return time.Time{}
	}
	counted := *after
	counted.HeldBack = before.HeldBack
	if next := last.Add(countInterval); now.Before(next) && !last.After(now) && equality.Semantic.DeepEqual(before, &counted) {
		return next
	}
	return now
}

// isInForce reports whether the status has the condition InForce=True.
func isInForce(status *tidekeeperv1.FreezeStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, tidekeeperv1.ConditionInForce)
}
