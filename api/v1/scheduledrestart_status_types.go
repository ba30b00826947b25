// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScheduledRestartStatus is the history of restarts, the current restart, and what is next.
type ScheduledRestartStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nextScheduleTime is the next tick that is not decided yet. If it is in
	// the past, it waits for something; the condition Ready says for what.
	//
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// noTickUntil is until when no tick of the schedule is inside a window. It is absent if
	// nextScheduleTime is known, and if there never is such a tick.
	//
	// +optional
	NoTickUntil *metav1.Time `json:"noTickUntil,omitempty"`

	// nextStartTime is when that tick is started: later than the tick by this
	// object's place in the spread. Without spreadSeconds it is absent.
	//
	// +optional
	NextStartTime *metav1.Time `json:"nextStartTime,omitempty"`

	// nextAgeTime is when the next restart for maxPodAgeSeconds is due, or earlier than
	// that: pods that were replaced since are younger. If it is in the past, the
	// restart waits for something.
	//
	// +optional
	NextAgeTime *metav1.Time `json:"nextAgeTime,omitempty"`

	// lastAgeTime is the tick of the last restart that was started for
	// maxPodAgeSeconds, and has ended.
	//
	// +optional
	LastAgeTime *metav1.Time `json:"lastAgeTime,omitempty"`

	// configHash is a hash of the content of the ConfigMaps and Secrets that counts for
	// onConfigChange: as it was when it was first seen, or when the last restart was
	// started. That of Secrets is hashed with their UIDs, so that no one can find out a
	// value by trying.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// nextChangeTime is when the restart for a change of that content is due. If it is in
	// the past, the restart waits for something. It is absent if nothing has changed.
	//
	// +optional
	NextChangeTime *metav1.Time `json:"nextChangeTime,omitempty"`

	// lastChangeTime is when the last restart for a change was started that has ended:
	// minIntervalSeconds count from then.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// changeDelayed says that the content has changed again since lastChangeTime, before
	// minIntervalSeconds had passed.
	//
	// +optional
	ChangeDelayed bool `json:"changeDelayed,omitempty"`

	// consecutiveDelays is how many times in a row the content has changed again so soon after
	// a restart for a change. It begins again when the content has stayed the same for
	// minIntervalSeconds. From three on, the condition RestartStorm names the object that
	// changes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveDelays int32 `json:"consecutiveDelays,omitempty"`

	// lastScheduleTime is the last tick that was started.
	//
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// lastSuccessfulTime is when a restart was last completed.
	//
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// lastRequestTime is the last value of the annotation
	// tidekeeper.dev/restart-now that was decided.
	//
	// +optional
	LastRequestTime *metav1.Time `json:"lastRequestTime,omitempty"`

	// pendingRequestTime is the value of that annotation while the request is
	// due and waits.
	//
	// +optional
	PendingRequestTime *metav1.Time `json:"pendingRequestTime,omitempty"`

	// observedTargetRef is the target for which nextScheduleTime is a tick.
	//
	// +optional
	ObservedTargetRef *TargetRef `json:"observedTargetRef,omitempty"`

	// consecutiveMisses is the number of consecutive records of ticks that could
	// not be started, since one was started or the spec was edited. From the fourth
	// on, ticks are recorded together, at intervals that grow to a quarter of an
	// hour.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveMisses int32 `json:"consecutiveMisses,omitempty"`

	// consecutiveFailures is how many restarts in a row have failed since the
	// spec was last edited. At failureLimit the schedule stops until then.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`

	// active is the restart in progress, or the next one, from shortly before it
	// starts.
	//
	// +optional
	Active *ActiveRestart `json:"active,omitempty"`

	// history has the records of the last ticks, the latest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	History []RestartRecord `json:"history,omitempty"`

	// conditions: Ready (its reason is the STATUS column), Reconciling and
	// Stalled as kstatus defines them, and RestartStorm.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ActiveRestart is a restart in progress, or one that starts soon.
type ActiveRestart struct {
	// scheduledTime is the tick. The pod template has it as the annotation
	// kubectl.kubernetes.io/restartedAt.
	ScheduledTime metav1.Time `json:"scheduledTime"`

	// startedTime is when it was started, or is started, up to a minute from now.
	StartedTime metav1.Time `json:"startedTime"`

	// trigger is Schedule, Request if the restart was requested by the
	// annotation tidekeeper.dev/restart-now, Age if the oldest pod reached
	// maxPodAgeSeconds, or Change if the content changed that onConfigChange is about.
	Trigger Trigger `json:"trigger"`

	// configHash is the hash of the content for onConfigChange with which its pods start.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// targetUID is the UID of the workload that is restarted.
	TargetUID string `json:"targetUID"`

	// targetRef names that workload. If it is absent, that is the workload of
	// spec.targetRef. An edit of the spec does not change it.
	//
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`

	// eviction is present if the pods are evicted. An edit of spec.method does not change
	// that.
	//
	// +optional
	Eviction *ActiveEviction `json:"eviction,omitempty"`
}

// ActiveEviction is what is remembered of a restart that evicts pods.
type ActiveEviction struct {
	// createdBefore says which pods are evicted: those that were created before it. It is
	// the tick, or just after the creation of the youngest pod that was older than the
	// tick when the restart was started, if that is earlier: so no pod is evicted that was
	// created since, even if the clock of the API server is behind.
	CreatedBefore metav1.Time `json:"createdBefore"`

	// refused is why the API server does not let the next pod be evicted, such as the
	// PodDisruptionBudget that does not allow it. Absent if the last eviction was
	// accepted.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Refused string `json:"refused,omitempty"`
}

// Trigger is what triggered a restart.
//
// +kubebuilder:validation:Enum=Schedule;Request;Age;Change
type Trigger string

const (
	// TriggerSchedule is a tick of the schedule.
	TriggerSchedule Trigger = "Schedule"
	// TriggerRequest is the annotation tidekeeper.dev/restart-now.
	TriggerRequest Trigger = "Request"
	// TriggerAge is the age of the oldest pod. Its tick is the time at which the restart
	// is due.
	TriggerAge Trigger = "Age"
	// TriggerChange is a change of the ConfigMaps and Secrets that the pods use. Its tick is
	// when it is due.
	TriggerChange Trigger = "Change"
)

// RestartRecord is the record of a tick.
type RestartRecord struct {
	// scheduledTime is the tick.
	ScheduledTime metav1.Time `json:"scheduledTime"`

	// trigger of the restart.
	Trigger Trigger `json:"trigger"`

	// configHash is, for the trigger Change, the hash of the content that the tick is about.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// startedTime is when it was started, if it was sent to its target.
	//
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`

	// completedTime is when it was decided: completed, failed, skipped or missed.
	CompletedTime metav1.Time `json:"completedTime"`

	// outcome of the tick.
	Outcome Outcome `json:"outcome"`

	// reason of an outcome that is not Succeeded, in one word.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message has details for users.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// pods is how many pods the restart has replaced: those that the target had when it
	// was completed, without those that were left out, and without those below the
	// partition of a StatefulSet, unless they were evicted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods,omitempty"`

	// podsLeftOut is how many pods of a DaemonSet were not waited for because
	// their nodes were not ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodsLeftOut int32 `json:"podsLeftOut,omitempty"`

	// podStartup says how long the new pods took to become ready. It is present
	// for a restart that succeeded, if the manager watches pods.
	//
	// +optional
	PodStartup *PodStartup `json:"podStartup,omitempty"`

	// earlierTicks is the number of earlier ticks that this record includes, for
	// example because no manager was running; 1000 means 1000 or more.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	EarlierTicks int32 `json:"earlierTicks,omitempty"`
}

// PodStartup sums up how long the new pods of a restart took, each from its
// creation until it was ready. The times in pods are in whole seconds.
type PodStartup struct {
	// pods is the number of pods that are counted: those that were ready when
	// the restart was completed. Pods that no longer existed then are not.
	//
	// +kubebuilder:validation:Minimum=1
	Pods int32 `json:"pods"`

	// medianSeconds is the median.
	//
	// +kubebuilder:validation:Minimum=0
	MedianSeconds int32 `json:"medianSeconds"`

	// maxSeconds is the maximum.
	//
	// +kubebuilder:validation:Minimum=0
	MaxSeconds int32 `json:"maxSeconds"`

	// medianChangeSeconds is the change of the median against the previous
	// restart, negative if it is shorter. Absent if the history has none.
	//
	// +optional
	MedianChangeSeconds *int32 `json:"medianChangeSeconds,omitempty"`

	// maxChangeSeconds is the change of the maximum.
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
	// OutcomeSkipped means that there was nothing to do, or that the restart must not be
	// done.
	OutcomeSkipped Outcome = "Skipped"
	// OutcomeMissed means that it could not be started before its deadline.
	OutcomeMissed Outcome = "Missed"
)
