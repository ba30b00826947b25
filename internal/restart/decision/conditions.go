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

// ReadyReasons lists all reasons of the condition Ready.
var ReadyReasons = []string{
	tidekeeperv1.ReasonScheduled, tidekeeperv1.ReasonSuspended, tidekeeperv1.ReasonRestarting,
	tidekeeperv1.ReasonTargetPaused, tidekeeperv1.ReasonTargetRolling, tidekeeperv1.ReasonTargetUnhealthy, tidekeeperv1.ReasonBudgetExhausted,
	tidekeeperv1.ReasonOutOfOrder, tidekeeperv1.ReasonPredecessorFailed, tidekeeperv1.ReasonPredecessorNotFound, tidekeeperv1.ReasonOrderCycle,
	tidekeeperv1.ReasonFrozen, tidekeeperv1.ReasonWindowClosed, tidekeeperv1.ReasonOutsideWindows, tidekeeperv1.ReasonInvalidSchedule, tidekeeperv1.ReasonFailureLimit, tidekeeperv1.ReasonTargetNotFound, tidekeeperv1.ReasonOrphaned,
	tidekeeperv1.ReasonStrategyOnDelete, tidekeeperv1.ReasonStrategyPartition, tidekeeperv1.ReasonPodsNotWatched,
	tidekeeperv1.ReasonConfigNotWatched, tidekeeperv1.ReasonClosedByQuery,
}

// Triggers lists all triggers of restarts.
var Triggers = []tidekeeperv1.Trigger{tidekeeperv1.TriggerSchedule, tidekeeperv1.TriggerRequest, tidekeeperv1.TriggerAge, tidekeeperv1.TriggerChange}

// TickReasons lists the possible reasons for each outcome of a tick, the scheduled time of a
// restart. The reason "" means that none is given.
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

// diagnosis is the content of the conditions Ready, Reconciling and Stalled.
type diagnosis struct {
	ready, stalled, reconciling bool
	reason, message             string
}

// The following functions return the three possible combinations of the conditions Ready,
// Reconciling and Stalled.
func idle(reason, message string) diagnosis {
	return diagnosis{ready: true, reason: reason, message: message}
}

func busy(reason, message string) diagnosis {
	return diagnosis{ready: true, reconciling: true, reason: reason, message: message}
}

func stalled(reason, message string) diagnosis {
	return diagnosis{stalled: true, reason: reason, message: message}
}

// longestCondition is the maximum length of a condition's message in bytes. The schema allows
// longer messages. However, a message can quote a value of the target, and is then written again
// each time the value changes.
const longestCondition = 4096

// conditions computes the conditions in the status of a ScheduledRestart.
type conditions struct {
	state    *state
	gates    *gateSet
	triggers *triggers
	misses   *misses
	budget   *budgetGate
	waiting  *waiting
	// failure describes the last failed attempt to send the tick (the scheduled time of the
	// restart) to the target. It is set only if the decision sends the tick again. Otherwise the
	// failed attempt may have reached the target nevertheless.
	failure SendFailure
	// scheduled is true if the ScheduledRestart has a schedule.
	scheduled bool
	// brief holds the conditions of decisions without messages ([Input.Brief]), for reuse; nil if
	// the current decision has messages.
	brief briefConditions
}

// briefConditions maps each reason to the conditions of a decision without messages
// ([Input.Brief]), which is only the condition Ready with that reason. The slices are never
// modified, so that all statuses can share them.
type briefConditions map[string][]metav1.Condition

// of returns the conditions of a decision without messages whose condition Ready has the given
// reason.
func (b briefConditions) of(reason string) []metav1.Condition {
	if b[reason] == nil {
		b[reason] = []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Reason: reason}}
	}
	return b[reason]
}

// set sets the conditions. Their messages must change only when a decision changes, as each change
// of a message causes a status write.
func (c *conditions) set() {
	is := c.diagnose()
	all := &c.state.status.Conditions
	if c.brief != nil {
		if ready := meta.FindStatusCondition(*all, tidekeeperv1.ConditionReady); ready == nil || ready.Reason != is.reason {
			*all = c.brief.of(is.reason)
		}
		return
	}
	is.message = text.Shorten(is.message, longestCondition)
	// Clone the slice, which is shared with the input and must not be modified.
	*all = slices.Clone(*all)
	set := func(conditionType string, value bool) {
		status := metav1.ConditionFalse
		if value {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(all, metav1.Condition{
			Type: conditionType, Status: status, Reason: is.reason, Message: is.message,
			ObservedGeneration: c.state.restart.Generation, LastTransitionTime: metav1.Time{Time: c.state.now},
		})
	}
	set(tidekeeperv1.ConditionReady, is.ready)
	// By the convention of kstatus, the conditions Stalled and Reconciling exist only while they
	// are True.
	setWhile := func(conditionType string, value bool) {
		if value {
			set(conditionType, true)
		} else if meta.FindStatusCondition(*all, conditionType) != nil {
			meta.RemoveStatusCondition(all, conditionType)
		}
	}
	setWhile(tidekeeperv1.ConditionStalled, is.stalled)
	setWhile(tidekeeperv1.ConditionReconciling, is.reconciling)
	source := Source{}
	if config := c.triggers.change.config; config != nil {
		source = config.Source
	}
	c.triggers.change.interval.setStorm(all, source)
}

// diagnose returns the content of the conditions. If several reasons apply, it chooses the reason
// that users should resolve first.
func (c *conditions) diagnose() diagnosis {
	status, missing := c.state.status, c.missing()
	switch {
	case c.state.invalid != nil:
		return stalled(tidekeeperv1.ReasonInvalidSchedule, c.state.invalid.Error())
	case len(c.gates.order.cycle) > 0:
		return stalled(tidekeeperv1.ReasonOrderCycle, cycleMessage(c.gates.order.cycle))
	case missing != nil:
		return busy(missing.reason, c.text(func() string { return "ticks are being missed: " + missing.message }))
	case c.waiting.blocker != nil && c.waiting.blocker.reason != tidekeeperv1.ReasonTargetNotFound:
		return c.diagnoseWait(c.waiting.blocker)
	case status.Active != nil:
		return busy(tidekeeperv1.ReasonRestarting, c.text(c.restartingMessage))
	case c.state.orphaned:
		return stalled(tidekeeperv1.ReasonOrphaned, c.text(func() string { return orphanedMessage(c.state.spec.TargetRef) }))
	case c.state.stopped() == tidekeeperv1.ReasonFailureLimit:
		return stalled(tidekeeperv1.ReasonFailureLimit,
			fmt.Sprintf("%d restarts in a row have failed; the schedule resumes when the spec is edited", status.ConsecutiveFailures))
	case c.state.target == nil || c.state.target.Deleting:
		return stalled(tidekeeperv1.ReasonTargetNotFound, c.gates.target.notFound())
	}
	if b := c.gates.target.blocks(c.state.now, time.Time{}); b != nil {
		return stalled(b.reason, b.message)
	}
	return c.diagnoseTriggers()
}

// missing returns the reason for which the schedule misses one tick (scheduled time) after another;
// nil if it does not. The condition Ready shows this reason permanently, so that the status is not
// written twice for each tick.
func (c *conditions) missing() *blocker {
	if !c.misses.goOn(c.triggers.schedule.ticks.Offset) {
		return nil
	}
	blocked := c.gates.inOrder().first(c.state.now, c.triggers.lastDue(c.state.now))
	if blocked == nil || blocked.permanent || blocked.reason == tidekeeperv1.ReasonTargetNotFound {
		return nil
	}
	return blocked
}

// diagnoseWait returns the content of the conditions while a due restart waits. b is the reason for
// which the restart cannot start.
func (c *conditions) diagnoseWait(b *blocker) diagnosis {
	switch b.reason {
	case tidekeeperv1.ReasonFrozen:
		return idle(b.reason, c.text(c.frozenMessage))
	case tidekeeperv1.ReasonWindowClosed:
		return idle(b.reason, c.text(func() string { return "a restart is due and waits: " + b.message }))
	default:
		return busy(b.reason, c.text(c.waitingMessage))
	}
}

// waitingMessage describes the reason for which a due restart waits, and the deadline of the
// restart.
func (c *conditions) waitingMessage() string {
	until := ""
	if !c.waiting.until.IsZero() && c.misses.quietUntil().IsZero() {
		until = " until " + formatTime(c.waiting.until)
	}
	return "a restart is due and waits" + until + ": " + c.waiting.blocker.message
}

// diagnoseTriggers returns the content of the conditions if no restart is due. They show the time
// of the next restart, or the reason for which there is none.
func (c *conditions) diagnoseTriggers() diagnosis {
	status, ages, config := c.state.status, c.triggers.age.ages, c.triggers.change.config
	switch {
	case c.state.spec.Suspend:
		return idle(tidekeeperv1.ReasonSuspended, "the schedule is suspended; to resume it, set spec.suspend to false")
	case ages != nil && ages.Unwatched:
		return stalled(tidekeeperv1.ReasonPodsNotWatched, "maxPodAgeSeconds cannot be kept, as the manager does not watch pods: enable its controller nodepool, pod-startup or pod-count")
	case config != nil && config.Problem != "":
		return stalled(config.Problem, config.Message)
	case !c.scheduled:
		return idle(tidekeeperv1.ReasonScheduled, c.text(c.triggers.message))
	case status.NoTickUntil != nil:
		return stalled(tidekeeperv1.ReasonOutsideWindows, "no tick of the schedule is inside a window until "+formatTime(status.NoTickUntil.Time)+", when the search goes on")
	case status.NextScheduleTime == nil && len(c.gates.window.windows) > 0:
		return stalled(tidekeeperv1.ReasonOutsideWindows, "no tick of the schedule is inside a window, so that it restarts nothing")
	case status.NextScheduleTime == nil:
		return idle(tidekeeperv1.ReasonScheduled, "the schedule has no upcoming tick")
	default:
		return idle(tidekeeperv1.ReasonScheduled, c.text(func() string { return c.scheduledMessage(status.NextScheduleTime.Time) }))
	}
}

// text returns the result of write. If the decision has no messages ([Input.Brief]), it returns ""
// and does not call write.
func (c *conditions) text(write func() string) string {
	if c.brief != nil {
		return ""
	}
	return write()
}

// frozenMessage describes the freeze for which a due restart waits, and the deadline of the restart
// if that is before the end of the freeze.
func (c *conditions) frozenMessage() string {
	message := "a restart is due and waits for " + c.waiting.blocker.message
	if until := c.waiting.until; !until.IsZero() && until.Before(c.waiting.blocker.until) && c.misses.quietUntil().IsZero() {
		message += "; its deadline is before that, at " + formatTime(until)
	}
	return message
}

func (c *conditions) scheduledMessage(next time.Time) string {
	ticks := c.triggers.schedule.ticks
	message := "next restart at " + formatTime(next.Add(ticks.Offset))
	if ticks.Offset > 0 {
		message += fmt.Sprintf(", %s after its tick", ticks.Offset)
	}
	message += c.gates.order.missing()
	if leftOut, ok := ticks.LeftOut(next); ok {
		message += fmt.Sprintf("; the tick of %s before it is outside all windows and does not count", formatTime(leftOut))
	}
	if triggers := c.triggers.message(); triggers != "" {
		message += "; " + triggers
	}
	return message
}

func (c *conditions) restartingMessage() string {
	active := c.state.status.Active
	ref := TargetRef(active, c.state.spec)
	message := fmt.Sprintf("restarting %s %s for the tick of %s", ref.Kind, ref.Name, formatTime(active.ScheduledTime.Time))
	if active.Eviction != nil {
		message = fmt.Sprintf("evicting the pods of %s %s for the tick of %s", ref.Kind, ref.Name, formatTime(active.ScheduledTime.Time))
		if active.Eviction.Refused != "" {
			message += "; " + active.Eviction.Refused
		}
	} else if c.failure.Refused {
		// Show only rejections. Other failures end quickly, and showing them would cost two status
		// writes.
		message += "; " + c.failure.String()
	}
	if c.budget.outlived {
		message += fmt.Sprintf("; this takes longer than %s, and other restarts may start meanwhile", c.budget.age)
	}
	return message
}
