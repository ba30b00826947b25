// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Reasons of the condition Ready of a ScheduledRestart, and of ticks that did not
// succeed ([RestartRecord]).
const (
	// ReasonScheduled means that the schedule waits for its next tick. Ready.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended means that spec.suspend is true. Ready. As the reason of a
	// tick: it was due when the schedule was suspended.
	ReasonSuspended = "Suspended"
	// ReasonRestarting means that a restart is in progress. Ready.
	ReasonRestarting = "Restarting"
	// ReasonInvalidSchedule means that the schedule or the time zone cannot be
	// used. Not ready.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonFailureLimit means that spec.failureLimit restarts in a row have
	// failed, so that the schedule has stopped until the spec is edited. Not ready.
	ReasonFailureLimit = "FailureLimit"
	// ReasonTargetNotFound means that the workload does not exist. Not ready; also
	// the reason of a tick.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonPodsNotWatched means that maxPodAgeSeconds cannot be kept, as no controller of the
	// manager watches pods. Not ready.
	ReasonPodsNotWatched = "PodsNotWatched"
	// ReasonConfigNotWatched means that nothing is known of the ConfigMaps or Secrets that
	// onConfigChange is about: the manager may not read them, or they are too many. Not ready.
	ReasonConfigNotWatched = "ConfigNotWatched"
	// ReasonOrphaned means that an opt-in created the ScheduledRestart for a workload that does
	// not exist any more, and that the one that has its name now has not taken it over. Not
	// ready; also the reason of a skipped tick.
	ReasonOrphaned = "Orphaned"
	// ReasonOutsideWindows means that no tick of the schedule is inside a window. Not ready.
	ReasonOutsideWindows = "OutsideWindows"
	// ReasonOrderCycle means that by spec.after some ScheduledRestarts come after each
	// other. Not ready; also the reason of a skipped tick.
	ReasonOrderCycle = "OrderCycle"
	// ReasonStrategyOnDelete means that the update strategy of the workload
	// replaces no pods by itself. Not ready; also the reason of a skipped tick.
	ReasonStrategyOnDelete = "StrategyOnDelete"
	// ReasonStrategyPartition means that no pod of the StatefulSet is above its
	// partition. Not ready; also the reason of a skipped tick.
	ReasonStrategyPartition = "StrategyPartition"

	// While a due tick waits for one of the following, the ScheduledRestart is
	// ready. A tick that waits beyond its deadline is missed for that reason.

	// ReasonTargetPaused means that the workload is paused.
	ReasonTargetPaused = "TargetPaused"
	// ReasonTargetRolling means that another rollout of the workload is in progress.
	ReasonTargetRolling = "TargetRolling"
	// ReasonTargetUnhealthy means that not all pods of the workload are available.
	ReasonTargetUnhealthy = "TargetUnhealthy"
	// ReasonOutOfOrder means that one of those in spec.after has not finished yet.
	ReasonOutOfOrder = "OutOfOrder"
	// ReasonPredecessorFailed means that the last restart of one of those in spec.after
	// has failed.
	ReasonPredecessorFailed = "PredecessorFailed"
	// ReasonPredecessorNotFound means that one of those in spec.after does not exist.
	ReasonPredecessorNotFound = "PredecessorNotFound"
	// ReasonBudgetExhausted means that the restart budget is used up.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonFrozen means that a Freeze is in force.
	ReasonFrozen = "Frozen"
	// ReasonWindowClosed means that no window is open, or too little is left of the one that
	// is.
	ReasonWindowClosed = "WindowClosed"

	// ReasonClosedByQuery means that a query of the manager's operator has a result, or
	// failed.
	ReasonClosedByQuery = "ClosedByQuery"

	// The following are reasons of ticks only.

	// ReasonAlreadyRestarted means that the workload had been restarted for the
	// tick, or later, before the tick was started. Skipped.
	ReasonAlreadyRestarted = "AlreadyRestarted"
	// ReasonSuperseded means that a later tick was due as well. Missed, or skipped
	// if one restart serves both a request and a tick.
	ReasonSuperseded = "Superseded"
	// ReasonEdited means that the spec was edited before the tick was started, and
	// no longer has the tick or names another target. Skipped.
	ReasonEdited = "Edited"
	// ReasonWithdrawn means that the request was removed before it was started.
	// Skipped.
	ReasonWithdrawn = "Withdrawn"
	// ReasonDeadlineExceeded means that no manager ran before the deadline, or that
	// the manager did not get to the tick. Missed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonProgressDeadline means that the workload has exceeded its own progress
	// deadline. Failed.
	ReasonProgressDeadline = "ProgressDeadlineExceeded"
	// ReasonTimeout means that spec.progressDeadlineSeconds have passed. Failed.
	ReasonTimeout = "Timeout"
	// ReasonEvictionRefused means that spec.progressDeadlineSeconds have passed while the
	// API server refused to evict a pod, mostly because of a PodDisruptionBudget. Failed.
	ReasonEvictionRefused = "EvictionRefused"
	// ReasonReverted means that the restart was reverted during its rollout. Failed.
	ReasonReverted = "Reverted"
)

// ConditionRestartStorm is present only while it is True: changes of ConfigMaps or Secrets keep
// coming, so that one restart after the other waits for minIntervalSeconds.
const ConditionRestartStorm = "RestartStorm"

// ReasonChangesKeepComing is the reason of the condition RestartStorm.
const ReasonChangesKeepComing = "ChangesKeepComing"

// WaitReasons are the reasons of the condition Ready with which a due tick waits.
var WaitReasons = []string{
	ReasonTargetNotFound, ReasonFrozen, ReasonWindowClosed, ReasonTargetPaused, ReasonTargetRolling, ReasonTargetUnhealthy,
	ReasonOutOfOrder, ReasonPredecessorFailed, ReasonPredecessorNotFound, ReasonBudgetExhausted, ReasonClosedByQuery,
}

// Reasons of events about a ScheduledRestart.
const (
	// One of these four is recorded for each tick.

	// EventRestartSucceeded is recorded when all pods were replaced and are available.
	EventRestartSucceeded = "RestartSucceeded"
	// EventRestartFailed is recorded when a restart was started and did not complete.
	EventRestartFailed = "RestartFailed"
	// EventRestartSkipped is recorded when there was nothing to do for a tick.
	EventRestartSkipped = "RestartSkipped"
	// EventRestartMissed is recorded when a tick was not started before its deadline.
	EventRestartMissed = "RestartMissed"

	// EventOrderCycle is recorded when the ScheduledRestart becomes not ready for the
	// reason of the same name.
	EventOrderCycle = "OrderCycle"

	// EventRestartStorm is recorded when the condition of the same name becomes True.
	EventRestartStorm = "RestartStorm"

	// EventScheduleDefaulted is recorded when the manager has written the default into
	// spec.schedule.
	EventScheduleDefaulted = "ScheduleDefaulted"

	// EventInvalidRequest is recorded when the annotation that requests a restart
	// has an invalid value.
	EventInvalidRequest = "InvalidRequest"
)
