// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setConditions says how the ScheduledRestart is. The messages hold nothing
// that changes while nothing is decided, so that the status is not written for
// their sake.
func (d *decider) setConditions() {
	ready, stalled, busy, reason, message := d.diagnose()
	set := func(conditionType string, is bool) {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&d.status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message,
			ObservedGeneration: d.restart.Generation, LastTransitionTime: metav1.Time{Time: d.now},
		})
	}
	set(ConditionReady, ready)
	// kstatus wants these two only while they are true.
	for conditionType, is := range map[string]bool{ConditionStalled: stalled, ConditionReconciling: busy} {
		if is {
			set(conditionType, true)
		} else {
			meta.RemoveStatusCondition(&d.status.Conditions, conditionType)
		}
	}
}

// diagnose says how the ScheduledRestart is. The cases stand in the order of
// what a person needs to know first.
func (d *decider) diagnose() (ready, stalled, busy bool, reason, message string) {
	ref := d.spec.TargetRef
	switch {
	case d.invalid != nil:
		return false, true, false, ReasonInvalidSchedule, d.invalid.Error()
	case d.waiting != nil && d.waiting.reason != ReasonTargetNotFound:
		return true, false, true, d.waiting.reason, fmt.Sprintf("a restart is due and waits until %s: %s", clockTime(d.until), d.waiting.message)
	case d.status.Active != nil:
		return true, false, true, ReasonRestarting,
			fmt.Sprintf("restarting %s %s for the tick of %s", ref.Kind, ref.Name, clockTime(d.status.Active.ScheduledTime.Time))
	case d.stopped() == ReasonFailureLimit:
		return false, true, false, ReasonFailureLimit,
			fmt.Sprintf("%d restarts in a row have failed; the schedule goes on when the spec is edited", d.status.ConsecutiveFailures)
	case d.target == nil || d.target.deleting:
		return false, true, false, ReasonTargetNotFound, fmt.Sprintf("there is no %s %s in this namespace", ref.Kind, ref.Name)
	case d.target.onDelete:
		return false, true, false, ReasonStrategyOnDelete, fmt.Sprintf("%s has the update strategy OnDelete, which rolls nothing", d.target)
	case d.spec.Suspend:
		return true, false, false, ReasonSuspended, "waits to be enabled: set spec.suspend to false"
	case d.status.NextScheduleTime == nil:
		return true, false, false, ReasonScheduled, "the schedule has no tick in sight"
	case d.offset > 0:
		return true, false, false, ReasonScheduled, fmt.Sprintf("next restart at %s, %s after its tick",
			clockTime(d.status.NextScheduleTime.Add(d.offset)), d.offset)
	default:
		return true, false, false, ReasonScheduled, "next restart at " + clockTime(d.status.NextScheduleTime.Time)
	}
}

func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
