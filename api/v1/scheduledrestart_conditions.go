// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Reasons of the condition Ready of a ScheduledRestart, and of ticks that did not succeed
// ([RestartRecord]). Each comment ends with the status of Ready, the outcome of the tick, or
// both.
const (
	// ReasonScheduled means that the schedule waits for its next tick. Ready: True.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended means that spec.suspend is true, or that the tick was due while the
	// schedule was suspended. Ready: True. Outcome: Skipped.
	ReasonSuspended = "Suspended"
	// ReasonRestarting means that a restart is in progress. Ready: True.
	ReasonRestarting = "Restarting"
	// ReasonInvalidSchedule means that the schedule or the time zone is invalid. Ready: False.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonFailureLimit means that spec.failureLimit consecutive restarts have failed, so that
	// the schedule is stopped until the spec is edited. Ready: False.
	ReasonFailureLimit = "FailureLimit"
	// ReasonTargetNotFound means that the workload does not exist. Ready: False. Outcome:
	// Missed; Failed or Skipped if the workload was deleted during the restart.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonPodsNotWatched means that maxPodAgeSeconds has no effect, because no controller of
	// the manager watches pods. Ready: False.
	ReasonPodsNotWatched = "PodsNotWatched"
	// ReasonConfigNotWatched means that the manager does not watch the ConfigMaps or Secrets that
	// onConfigChange selects (see --optional-watches), or that the pod template uses too many.
	// Ready: False.
	ReasonConfigNotWatched = "ConfigNotWatched"
	// ReasonOrphaned means that an opt-in created the ScheduledRestart for a workload that was
	// deleted, and that the new workload of the same name has not adopted it. Ready: False.
	// Outcome: Skipped.
	ReasonOrphaned = "Orphaned"
	// ReasonOutsideWindows means that no tick of the schedule is inside a window. Ready: False.
	ReasonOutsideWindows = "OutsideWindows"
	// ReasonOrderCycle means that spec.after forms a cycle of ScheduledRestarts. Ready: False.
	// Outcome: Skipped.
	ReasonOrderCycle = "OrderCycle"
	// ReasonStrategyOnDelete means that the update strategy of the workload is OnDelete, so
	// that its controller does not replace pods. Ready: False. Outcome: Skipped.
	ReasonStrategyOnDelete = "StrategyOnDelete"
	// ReasonStrategyPartition means that no pod of the StatefulSet has an ordinal at or above
	// the partition of its update strategy. Ready: False. Outcome: Skipped.
	ReasonStrategyPartition = "StrategyPartition"

	// A due tick waits while one of the following reasons applies, and Ready is True. A tick
	// that waits beyond its starting deadline is recorded as Missed with that reason.

	// ReasonTargetPaused means that the workload is paused.
	ReasonTargetPaused = "TargetPaused"
	// ReasonTargetRolling means that another rollout of the workload is in progress.
	ReasonTargetRolling = "TargetRolling"
	// ReasonTargetUnhealthy means that not all pods of the workload are available, or that new pods
	// would not start, because a ConfigMap or Secret that they use, or a key in it, is missing.
	ReasonTargetUnhealthy = "TargetUnhealthy"
	// ReasonOutOfOrder means that a ScheduledRestart in spec.after has not finished yet.
	ReasonOutOfOrder = "OutOfOrder"
	// ReasonPredecessorFailed means that the last restart of a ScheduledRestart in spec.after
	// has failed.
	ReasonPredecessorFailed = "PredecessorFailed"
	// ReasonPredecessorNotFound means that a ScheduledRestart in spec.after does not exist.
	ReasonPredecessorNotFound = "PredecessorNotFound"
	// ReasonBudgetExhausted means that the restart budget is used up.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonFrozen means that a Freeze is in force.
	ReasonFrozen = "Frozen"
	// ReasonWindowClosed means that no window is open, or that the open window closes too soon
	// for the restart to finish.
	ReasonWindowClosed = "WindowClosed"

	// ReasonClosedByQuery means that a Prometheus query which the manager is configured with
	// returned a result, or failed.
	ReasonClosedByQuery = "ClosedByQuery"

	// The following are reasons of ticks only.

	// ReasonAlreadyRestarted means that the workload had been restarted at or after the time of
	// the tick, before the tick was started. Outcome: Skipped.
	ReasonAlreadyRestarted = "AlreadyRestarted"
	// ReasonSuperseded means that a later tick was due as well. Outcome: Missed, or Skipped if
	// one restart serves both a request and a tick.
	ReasonSuperseded = "Superseded"
	// ReasonEdited means that the spec was edited before the tick was started, and that its
	// schedule no longer has the tick or its target is another workload. Outcome: Skipped.
	ReasonEdited = "Edited"
	// ReasonWithdrawn means that the request was removed before its restart was started.
	// Outcome: Skipped.
	ReasonWithdrawn = "Withdrawn"
	// ReasonDeadlineExceeded means that no manager was running before the starting deadline, or
	// that the manager did not process the tick in time. Outcome: Missed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonProgressDeadline means that the workload exceeded its own progress deadline.
	// Outcome: Failed.
	ReasonProgressDeadline = "ProgressDeadlineExceeded"
	// ReasonTimeout means that the restart took longer than spec.progressDeadlineSeconds.
	// Outcome: Failed.
	ReasonTimeout = "Timeout"
	// ReasonEvictionRefused means that spec.progressDeadlineSeconds passed while the API server
	// refused to evict a pod, usually because of a PodDisruptionBudget. Outcome: Failed.
	ReasonEvictionRefused = "EvictionRefused"
	// ReasonReverted means that the restart was reverted during its rollout. Outcome: Failed.
	ReasonReverted = "Reverted"
)

// ConditionRestartStorm is present only while it is True: ConfigMaps or Secrets change so often
// that each restart waits until minIntervalSeconds have passed since the previous restart.
const ConditionRestartStorm = "RestartStorm"

// ReasonChangesKeepComing is the reason of the condition RestartStorm.
const ReasonChangesKeepComing = "ChangesKeepComing"

// WaitReasons are the reasons that the condition Ready can have while a due tick waits.
var WaitReasons = []string{
	ReasonTargetNotFound, ReasonFrozen, ReasonWindowClosed, ReasonTargetPaused, ReasonTargetRolling, ReasonTargetUnhealthy,
	ReasonOutOfOrder, ReasonPredecessorFailed, ReasonPredecessorNotFound, ReasonBudgetExhausted, ReasonClosedByQuery,
}

// Reasons of events about a ScheduledRestart.
const (
	// Exactly one event with one of the following four reasons is recorded for each tick.

	// EventRestartSucceeded is recorded when all pods were replaced and are available.
	EventRestartSucceeded = "RestartSucceeded"
	// EventRestartFailed is recorded when a restart was started and did not complete.
	EventRestartFailed = "RestartFailed"
	// EventRestartSkipped is recorded when a tick needed no restart, or must not have one.
	EventRestartSkipped = "RestartSkipped"
	// EventRestartMissed is recorded when a tick was not started before its deadline.
	EventRestartMissed = "RestartMissed"

	// EventOrderCycle is recorded when the ScheduledRestart becomes not ready for the
	// reason of the same name.
	EventOrderCycle = "OrderCycle"

	// EventRestartStorm is recorded when the condition of the same name becomes True.
	EventRestartStorm = "RestartStorm"

	// EventRequestsUsedUp is recorded when the ScheduledRestart waits because the objects of
	// its namespace have used up their requests to the API server; for one object of a namespace
	// at a time, which may also be a workload.
	EventRequestsUsedUp = "RequestsUsedUp"

	// EventScheduleDefaulted is recorded when the manager has written the default into
	// spec.schedule.
	EventScheduleDefaulted = "ScheduleDefaulted"

	// EventInvalidRequest is recorded when the annotation that requests a restart
	// has an invalid value.
	EventInvalidRequest = "InvalidRequest"
)
