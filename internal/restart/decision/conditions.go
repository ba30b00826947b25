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
	"tidekeeper.dev/tidekeeper/internal/text"
)

// ReadyReasons are the reasons of the condition Ready.
var ReadyReasons = []string{
	tidekeeperv1.ReasonScheduled, tidekeeperv1.ReasonSuspended, tidekeeperv1.ReasonRestarting,
	tidekeeperv1.ReasonTargetPaused, tidekeeperv1.ReasonTargetRolling, tidekeeperv1.ReasonTargetUnhealthy, tidekeeperv1.ReasonBudgetExhausted,
	tidekeeperv1.ReasonOutOfOrder, tidekeeperv1.ReasonPredecessorFailed, tidekeeperv1.ReasonPredecessorNotFound, tidekeeperv1.ReasonOrderCycle,
	tidekeeperv1.ReasonFrozen, tidekeeperv1.ReasonWindowClosed, tidekeeperv1.ReasonOutsideWindows, tidekeeperv1.ReasonInvalidSchedule, tidekeeperv1.ReasonFailureLimit, tidekeeperv1.ReasonTargetNotFound, tidekeeperv1.ReasonOrphaned,
	tidekeeperv1.ReasonStrategyOnDelete, tidekeeperv1.ReasonStrategyPartition, tidekeeperv1.ReasonPodsNotWatched,
	tidekeeperv1.ReasonConfigNotWatched, tidekeeperv1.ReasonClosedByQuery,
}

// Triggers are all triggers of restarts.
var Triggers = []tidekeeperv1.Trigger{tidekeeperv1.TriggerSchedule, tidekeeperv1.TriggerRequest, tidekeeperv1.TriggerAge, tidekeeperv1.TriggerChange}

// TickReasons are the reasons of each outcome of a tick.
var TickReasons = map[tidekeeperv1.Outcome][]string{
	tidekeeperv1.OutcomeSucceeded: {""},
	tidekeeperv1.OutcomeFailed: {
		tidekeeperv1.ReasonTimeout, tidekeeperv1.ReasonProgressDeadline, tidekeeperv1.ReasonTargetNotFound, tidekeeperv1.ReasonReverted,
		tidekeeperv1.ReasonEvictionRefused,
	},
	tidekeeperv1.OutcomeSkipped: {
		tidekeeperv1.ReasonSuspended, tidekeeperv1.ReasonInvalidSchedule, tidekeeperv1.ReasonFailureLimit, tidekeeperv1.ReasonOrphaned,
		tidekeeperv1.ReasonStrategyOnDelete, tidekeeperv1.ReasonStrategyPartition, tidekeeperv1.ReasonOrderCycle, tidekeeperv1.ReasonAlreadyRestarted,
		tidekeeperv1.ReasonSuperseded, tidekeeperv1.ReasonEdited, tidekeeperv1.ReasonWithdrawn, tidekeeperv1.ReasonTargetNotFound,
	},
	tidekeeperv1.OutcomeMissed: {
		tidekeeperv1.ReasonTargetNotFound, tidekeeperv1.ReasonTargetPaused, tidekeeperv1.ReasonTargetRolling,
		tidekeeperv1.ReasonTargetUnhealthy, tidekeeperv1.ReasonFrozen, tidekeeperv1.ReasonWindowClosed, tidekeeperv1.ReasonInvalidSchedule, tidekeeperv1.ReasonBudgetExhausted,
		tidekeeperv1.ReasonDeadlineExceeded, tidekeeperv1.ReasonSuperseded,
		tidekeeperv1.ReasonOutOfOrder, tidekeeperv1.ReasonPredecessorFailed, tidekeeperv1.ReasonPredecessorNotFound, tidekeeperv1.ReasonClosedByQuery,
	},
}

// diagnosis is what the conditions say.
type diagnosis struct {
	ready, stalled, reconciling bool
	reason, message             string
}

// The three combinations that occur.
func idle(reason, message string) diagnosis {
	return diagnosis{ready: true, reason: reason, message: message}
}

func busy(reason, message string) diagnosis {
	return diagnosis{ready: true, reconciling: true, reason: reason, message: message}
}

func stalled(reason, message string) diagnosis {
	return diagnosis{stalled: true, reason: reason, message: message}
}

// longestCondition bounds the message of a condition, to less than its schema does: what is
// written at each change should not be what a target makes of it.
const longestCondition = 4096

// setConditions sets the conditions. Their messages contain nothing that changes while
// nothing is decided, so that the status is not written for their sake.
func (d *decider) setConditions() {
	is := d.diagnose()
	is.message = text.Shorten(is.message, longestCondition)
	conditions := &d.out.Status.Conditions
	if d.in.Brief {
		if ready := meta.FindStatusCondition(*conditions, tidekeeperv1.ConditionReady); ready == nil || ready.Reason != is.reason {
			*conditions = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Reason: is.reason}}
		}
		return
	}
	// They are shared with the input.
	*conditions = slices.Clone(*conditions)
	set := func(conditionType string, value bool) {
		status := metav1.ConditionFalse
		if value {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: is.reason, Message: is.message,
			ObservedGeneration: d.in.Restart.Generation, LastTransitionTime: metav1.Time{Time: d.in.Now},
		})
	}
	set(tidekeeperv1.ConditionReady, is.ready)
	// kstatus wants these two only while they are true.
	setWhile := func(conditionType string, value bool) {
		if value {
			set(conditionType, true)
		} else if meta.FindStatusCondition(*conditions, conditionType) != nil {
			meta.RemoveStatusCondition(conditions, conditionType)
		}
	}
	setWhile(tidekeeperv1.ConditionStalled, is.stalled)
	setWhile(tidekeeperv1.ConditionReconciling, is.reconciling)
	d.setStorm(conditions)
}

// diagnose returns what the conditions say. The order of the cases is that of what a
// person needs to know first.
func (d *decider) diagnose() diagnosis {
	status, missing := &d.out.Status, d.missing()
	switch {
	case d.in.Invalid != nil:
		return stalled(tidekeeperv1.ReasonInvalidSchedule, d.in.Invalid.Error())
	case len(d.in.Cycle) > 0:
		return stalled(tidekeeperv1.ReasonOrderCycle, cycleMessage(d.in.Cycle))
	case missing != nil:
		return busy(missing.reason, "ticks are being missed: "+missing.message)
	case d.waitsFor != nil && d.waitsFor.reason == tidekeeperv1.ReasonFrozen:
		return idle(tidekeeperv1.ReasonFrozen, d.text(d.frozenMessage))
	case d.waitsFor != nil && d.waitsFor.reason == tidekeeperv1.ReasonWindowClosed:
		return idle(tidekeeperv1.ReasonWindowClosed, "a restart is due and waits: "+d.waitsFor.message)
	case d.waitsFor != nil && d.waitsFor.reason != tidekeeperv1.ReasonTargetNotFound && (d.waitsUntil.IsZero() || !d.quietUntil().IsZero()):
		return busy(d.waitsFor.reason, "a restart is due and waits: "+d.waitsFor.message)
	case d.waitsFor != nil && d.waitsFor.reason != tidekeeperv1.ReasonTargetNotFound:
		return busy(d.waitsFor.reason, d.text(func() string {
			return fmt.Sprintf("a restart is due and waits until %s: %s", formatTime(d.waitsUntil), d.waitsFor.message)
		}))
	case status.Active != nil:
		return busy(tidekeeperv1.ReasonRestarting, d.text(d.restartingMessage))
	case d.in.Orphaned():
		return stalled(tidekeeperv1.ReasonOrphaned, d.text(d.orphanedMessage))
	case d.stopped() == tidekeeperv1.ReasonFailureLimit:
		return stalled(tidekeeperv1.ReasonFailureLimit,
			fmt.Sprintf("%d restarts in a row have failed; the schedule resumes when the spec is edited", status.ConsecutiveFailures))
	case d.in.Target == nil || d.in.Target.Deleting:
		return stalled(tidekeeperv1.ReasonTargetNotFound, notFound(d.spec.TargetRef, &d.in))
	case d.in.Target.OnDelete && !evicts(d.spec):
		return stalled(tidekeeperv1.ReasonStrategyOnDelete, onDeleteMessage(d.in.Target))
	case d.in.Target.Partitioned && !evicts(d.spec):
		return stalled(tidekeeperv1.ReasonStrategyPartition, partitionMessage(d.in.Target))
	case d.spec.Suspend:
		return idle(tidekeeperv1.ReasonSuspended, "the schedule is suspended; to resume it, set spec.suspend to false")
	case d.in.PodAges != nil && d.in.PodAges.Unwatched:
		return stalled(tidekeeperv1.ReasonPodsNotWatched, "maxPodAgeSeconds cannot be kept, as the manager does not watch pods: enable its controller nodepool, pod-startup or pod-count")
	case d.in.Config != nil && d.in.Config.Problem != "":
		return stalled(d.in.Config.Problem, d.in.Config.Message)
	case d.in.Ticks == nil:
		return idle(tidekeeperv1.ReasonScheduled, d.text(d.triggersMessage))
	case status.NoTickUntil != nil:
		return stalled(tidekeeperv1.ReasonOutsideWindows, "no tick of the schedule is inside a window until "+formatTime(status.NoTickUntil.Time)+", when the search goes on")
	case status.NextScheduleTime == nil && len(d.in.Windows) > 0:
		return stalled(tidekeeperv1.ReasonOutsideWindows, "no tick of the schedule is inside a window, so that it restarts nothing")
	case status.NextScheduleTime == nil:
		return idle(tidekeeperv1.ReasonScheduled, "the schedule has no upcoming tick")
	default:
		return idle(tidekeeperv1.ReasonScheduled, d.text(func() string { return d.scheduledMessage(status.NextScheduleTime.Time) }))
	}
}

// text writes a message, if there has to be one.
func (d *decider) text(write func() string) string {
	if d.in.Brief {
		return ""
	}
	return write()
}

func (d *decider) scheduledMessage(next time.Time) string {
	message := "next restart at " + formatTime(next.Add(d.in.Offset))
	if d.in.Offset > 0 {
		message += fmt.Sprintf(", %s after its tick", d.in.Offset)
	}
	message += d.orderMessage()
	if leftOut, ok := d.ticks().LeftOut(next); ok {
		message += fmt.Sprintf("; the tick of %s before it is outside all windows and does not count", formatTime(leftOut))
	}
	if triggers := d.triggersMessage(); triggers != "" {
		message += "; " + triggers
	}
	return message
}

func (d *decider) restartingMessage() string {
	active := d.out.Status.Active
	ref := TargetRef(active, d.spec)
	message := fmt.Sprintf("restarting %s %s for the tick of %s", ref.Kind, ref.Name, formatTime(active.ScheduledTime.Time))
	if active.Eviction != nil {
		message = fmt.Sprintf("evicting the pods of %s %s for the tick of %s", ref.Kind, ref.Name, formatTime(active.ScheduledTime.Time))
		if active.Eviction.Refused != "" {
			message += "; " + active.Eviction.Refused
		}
	}
	if d.out.Outlived {
		message += fmt.Sprintf("; this takes longer than %s, and other restarts may start meanwhile", d.in.SlotAge)
	}
	return message
}
