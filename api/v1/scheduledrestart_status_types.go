// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScheduledRestartStatus is the observed state of a ScheduledRestart: the history of its ticks,
// the current restart, and the next tick.
type ScheduledRestartStatus struct {
	// observedGeneration is the generation of the spec that this status was computed from.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nextScheduleTime is the time of the next tick of the schedule that has no outcome yet. A
	// time in the past means that the tick is due and waits, for the reason of the condition
	// Ready.
	//
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// noTickUntil is the time up to which the manager found no tick of the schedule inside a
	// window. Absent if nextScheduleTime is known, or if no tick will ever be inside a window.
	//
	// +optional
	NoTickUntil *metav1.Time `json:"noTickUntil,omitempty"`

	// nextStartTime is the time at which the restart for nextScheduleTime will be started: the
	// tick plus the offset of this object within spreadSeconds. Absent if spreadSeconds is 0.
	//
	// +optional
	NextStartTime *metav1.Time `json:"nextStartTime,omitempty"`

	// nextAgeTime is the earliest time at which the next restart for maxPodAgeSeconds may be
	// due. The restart may turn out to be due later, because pods replaced in the meantime are
	// younger. A time in the past means that the restart is due and waits.
	//
	// +optional
	NextAgeTime *metav1.Time `json:"nextAgeTime,omitempty"`

	// lastAgeTime is the tick of the last completed restart for maxPodAgeSeconds.
	//
	// +optional
	LastAgeTime *metav1.Time `json:"lastAgeTime,omitempty"`

	// configHash is a hash of the content that onConfigChange compares: the content of the
	// ConfigMaps and Secrets when the manager first read them, or when the last restart was
	// started. The content of a Secret is hashed together with its UID, so that a value cannot
	// be found by guessing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// configTime is a time at which the ConfigMaps and Secrets had the content of configHash. If
	// the content differs although no object records a later modification, it was changed by an
	// edit without a timestamp, such as the removal of a key.
	//
	// +optional
	ConfigTime *metav1.Time `json:"configTime,omitempty"`

	// nextChangeTime is the time at which the restart for a change of ConfigMaps or Secrets is
	// due. A time in the past means that the restart is due and waits. Absent if the content
	// has not changed.
	//
	// +optional
	NextChangeTime *metav1.Time `json:"nextChangeTime,omitempty"`

	// lastChangeTime is the start time of the last completed restart for a change of ConfigMaps
	// or Secrets. The interval minIntervalSeconds begins at this time.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// changeDelayed is true if the content has changed again after lastChangeTime, before
	// minIntervalSeconds had passed.
	//
	// +optional
	ChangeDelayed bool `json:"changeDelayed,omitempty"`

	// consecutiveDelays is the number of consecutive restarts for a change after which the
	// content changed again before minIntervalSeconds had passed. Reset to 0 once the content
	// has not changed for minIntervalSeconds. From 3 on, the condition RestartStorm names the
	// object that changes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveDelays int32 `json:"consecutiveDelays,omitempty"`

	// lastScheduleTime is the time of the last tick of the schedule for which a restart was
	// started.
	//
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// lastSuccessfulTime is the time at which a restart last completed successfully.
	//
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// lastRequestTime is the value of the annotation tidekeeper.dev/restart-now for the last
	// request whose restart was started, or that got an outcome without a restart.
	//
	// +optional
	LastRequestTime *metav1.Time `json:"lastRequestTime,omitempty"`

	// pendingRequestTime is the value of the annotation tidekeeper.dev/restart-now while the
	// requested restart is due and waits.
	//
	// +optional
	PendingRequestTime *metav1.Time `json:"pendingRequestTime,omitempty"`

	// observedTargetRef is the target that nextScheduleTime was computed for.
	//
	// +optional
	ObservedTargetRef *TargetRef `json:"observedTargetRef,omitempty"`

	// consecutiveMisses is the number of consecutive records with the outcome Missed. Reset to
	// 0 when a restart is started or the spec is edited. From the fourth miss on, several ticks
	// share one record, written at intervals that grow to 15 minutes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveMisses int32 `json:"consecutiveMisses,omitempty"`

	// consecutiveFailures is the number of consecutive failed restarts since the spec was last
	// edited. The schedule stops when this number reaches failureLimit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`

	// active is the restart in progress, or the restart that is about to start.
	//
	// +optional
	Active *ActiveRestart `json:"active,omitempty"`

	// history is the list of records of recent ticks, latest first. At most historyLimit.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	History []RestartRecord `json:"history,omitempty"`

	// conditions are Ready, Reconciling and Stalled as kstatus defines them, and RestartStorm.
	// The reason of Ready is the STATUS column.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ActiveRestart is a restart that is in progress or about to start.
type ActiveRestart struct {
	// scheduledTime is the time of the tick. The restart sets the annotation
	// kubectl.kubernetes.io/restartedAt of the pod template to this time.
	ScheduledTime metav1.Time `json:"scheduledTime"`

	// startedTime is the time at which the restart was started, or will be, at most one minute
	// ahead.
	StartedTime metav1.Time `json:"startedTime"`

	// trigger is the cause of the restart: Schedule for a tick of the schedule, Request for the
	// annotation tidekeeper.dev/restart-now, Age if the oldest pod reached maxPodAgeSeconds, or
	// Change if ConfigMaps or Secrets selected by onConfigChange changed.
	Trigger Trigger `json:"trigger"`

	// configHash is the hash of the ConfigMap and Secret content with which the new pods start.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// targetUID is the UID of the workload that is restarted.
	TargetUID string `json:"targetUID"`

	// targetRef is the workload that is restarted, which later edits of the spec do not change.
	// If absent, the workload is spec.targetRef.
	//
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`

	// eviction is the progress of a restart that evicts pods. Absent for the method Rollout.
	// Later edits of spec.method do not change the method of a restart in progress.
	//
	// +optional
	Eviction *ActiveEviction `json:"eviction,omitempty"`
}

// ActiveEviction is the progress of a restart that evicts pods.
type ActiveEviction struct {
	// createdBefore selects the pods to evict: pods created before this time. It is the earlier
	// of two times: the tick, and the moment just after the creation of the youngest pod that
	// was older than the tick when the restart was started. So no pod created since is evicted,
	// even if the clock of the API server is behind.
	CreatedBefore metav1.Time `json:"createdBefore"`

	// refused is the reason for which the API server refuses to evict the next pod, for example
	// a PodDisruptionBudget. Absent if the last eviction was accepted.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Refused string `json:"refused,omitempty"`
}

// Trigger is the cause of a restart.
//
// +kubebuilder:validation:Enum=Schedule;Request;Age;Change
type Trigger string

const (
	// TriggerSchedule is a tick of the schedule.
	TriggerSchedule Trigger = "Schedule"
	// TriggerRequest is the annotation tidekeeper.dev/restart-now.
	TriggerRequest Trigger = "Request"
	// TriggerAge is the age of the oldest pod. Its tick is the time at which the restart is
	// due.
	TriggerAge Trigger = "Age"
	// TriggerChange is a change of the ConfigMaps and Secrets that the pods use. Its tick is
	// the time at which the restart is due.
	TriggerChange Trigger = "Change"
)

// RestartRecord is the record of a tick.
type RestartRecord struct {
	// scheduledTime is the time of the tick.
	ScheduledTime metav1.Time `json:"scheduledTime"`

	// trigger is the cause of the restart.
	Trigger Trigger `json:"trigger"`

	// configHash is the hash of the content that the restart was due for. Present only for the
	// trigger Change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// startedTime is the time at which the restart was started. Absent if no restart was sent
	// to the target.
	//
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`

	// completedTime is the time at which the tick got its outcome.
	CompletedTime metav1.Time `json:"completedTime"`

	// outcome is the outcome of the tick: Succeeded, Failed, Skipped or Missed.
	Outcome Outcome `json:"outcome"`

	// reason is a one-word explanation of an outcome other than Succeeded.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message is a human-readable explanation of the outcome.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// pods is the number of pods that the restart has replaced: the pods of the target when the
	// restart completed, except pods counted in podsLeftOut and, unless pods were evicted, pods
	// below the partition of a StatefulSet.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods,omitempty"`

	// podsLeftOut is the number of pods of a DaemonSet that the restart did not wait for,
	// because their nodes were not Ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodsLeftOut int32 `json:"podsLeftOut,omitempty"`

	// podStartup is a summary of the time that the new pods took to become Ready. Present for a
	// successful restart if the manager watches pods.
	//
	// +optional
	PodStartup *PodStartup `json:"podStartup,omitempty"`

	// earlierTicks is the number of earlier ticks that this record includes, for example
	// because no manager was running. The value 1000 means 1,000 or more.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	EarlierTicks int32 `json:"earlierTicks,omitempty"`
}

// PodStartup summarizes the time that the new pods of a restart took from creation to Ready.
// All times are in whole seconds, as in the status of pods.
type PodStartup struct {
	// pods is the number of pods that are counted: pods that were Ready when the restart
	// completed. Pods deleted by then do not count.
	//
	// +kubebuilder:validation:Minimum=1
	Pods int32 `json:"pods"`

	// medianSeconds is the median startup time, in seconds.
	//
	// +kubebuilder:validation:Minimum=0
	MedianSeconds int32 `json:"medianSeconds"`

	// maxSeconds is the maximum startup time, in seconds.
	//
	// +kubebuilder:validation:Minimum=0
	MaxSeconds int32 `json:"maxSeconds"`

	// medianChangeSeconds is the difference of medianSeconds to the previous restart in the
	// history, negative if startup became faster. Absent if there is no previous restart.
	//
	// +optional
	MedianChangeSeconds *int32 `json:"medianChangeSeconds,omitempty"`

	// maxChangeSeconds is the difference of maxSeconds to the previous restart in the history.
	//
	// +optional
	MaxChangeSeconds *int32 `json:"maxChangeSeconds,omitempty"`
}

// Outcome is the outcome of a tick.
//
// +kubebuilder:validation:Enum=Succeeded;Failed;Skipped;Missed
type Outcome string

const (
	// OutcomeSucceeded means that all pods were replaced and are available.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed means that the restart was started and did not complete.
	OutcomeFailed Outcome = "Failed"
	// OutcomeSkipped means that the tick needed no restart, or must not have one.
	OutcomeSkipped Outcome = "Skipped"
	// OutcomeMissed means that the restart could not be started before its deadline.
	OutcomeMissed Outcome = "Missed"
)
