// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScheduledRestartSpec says what is restarted, and when.
type ScheduledRestartSpec struct {
	// targetRef names the workload, in the same namespace.
	TargetRef TargetRef `json:"targetRef"`

	// schedule says at which ticks: the five fields of cron (minute, hour,
	// day-of-month, month, day-of-week), or one of @hourly, @daily,
	// @midnight, @weekly, @monthly, @yearly, @annually.
	//
	// +optional
	// +kubebuilder:default="0 0 * * *"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="the time zone does not belong into the schedule: set timeZone"
	// +kubebuilder:validation:XValidation:rule="self.contains('TZ=') || self.matches('^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$') || self.matches('^ *[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9A-Za-z*/,?]+ +[-0-9A-Za-z*/,?]+ *$')",message="schedule must have the five fields of cron, minute hour day-of-month month day-of-week, for instance '0 3 * * 1-5', or be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
	Schedule string `json:"schedule,omitempty"`

	// timeZone of the schedule, by its IANA name, for instance Europe/Berlin.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*$') && self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be the IANA name of a time zone, for instance Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops the schedule. A restart that is under way goes on.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// startingDeadlineSeconds is how long after its time a restart may still
	// be started. One that was not by then is Missed, and never run late.
	//
	// +optional
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartingDeadlineSeconds int32 `json:"startingDeadlineSeconds,omitempty"`

	// spreadSeconds is a window after each tick in which the restart is
	// started, at a moment that is always the same for a namespace and name and differs
	// between objects, so that not all start at once.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	SpreadSeconds int32 `json:"spreadSeconds,omitempty"`

	// precondition is Healthy, so that what is broken already is not
	// restarted, or None.
	//
	// +optional
	// +kubebuilder:default=Healthy
	// +kubebuilder:validation:Enum=Healthy;None
	Precondition Precondition `json:"precondition,omitempty"`

	// progressDeadlineSeconds is how long a restart may take before it is
	// recorded as Failed.
	//
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// failureLimit is how many failures in a row stop the schedule, until the
	// spec is edited.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// historyLimit is how many ticks the history keeps.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HistoryLimit int32 `json:"historyLimit,omitempty"`
}

// TargetRef names a workload in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="(self.apiVersion + '/' + self.kind) in ['apps/v1/Deployment', 'apps/v1/StatefulSet', 'apps/v1/DaemonSet', 'argoproj.io/v1alpha1/Rollout']",message="apiVersion and kind must be apps/v1 and Deployment, StatefulSet or DaemonSet, or argoproj.io/v1alpha1 and Rollout"
type TargetRef struct {
	// apiVersion is the group and version of the kind: apps/v1, or
	// argoproj.io/v1alpha1 for a Rollout.
	//
	// +optional
	// +kubebuilder:default="apps/v1"
	// +kubebuilder:validation:Enum=apps/v1;argoproj.io/v1alpha1
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is Deployment, StatefulSet, DaemonSet or Rollout.
	//
	// +kubebuilder:validation:Enum=Deployment;StatefulSet;DaemonSet;Rollout
	Kind string `json:"kind"`

	// name of the workload.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be the name of a workload: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`
}

// Precondition is what must hold before a restart is started.
type Precondition string

const (
	// PreconditionHealthy wants all pods of the target available.
	PreconditionHealthy Precondition = "Healthy"
	// PreconditionNone restarts the target in whatever state it is.
	PreconditionNone Precondition = "None"
)

// ScheduledRestartStatus is what has happened and what is next.
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

	// nextStartTime is when that tick is started: later than the tick by this
	// object's place in the spread. Without spreadSeconds it is absent.
	//
	// +optional
	NextStartTime *metav1.Time `json:"nextStartTime,omitempty"`

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

	// pendingRequestTime is the value of that annotation that is due and waits.
	//
	// +optional
	PendingRequestTime *metav1.Time `json:"pendingRequestTime,omitempty"`

	// observedTargetRef is the target that nextScheduleTime is a tick for.
	//
	// +optional
	ObservedTargetRef *TargetRef `json:"observedTargetRef,omitempty"`

	// consecutiveMisses is how many records in a row tell of ticks that could not
	// be started, since one was started or the spec was edited. From the fourth on
	// ticks are told together, at most every quarter of an hour.
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

	// active is the restart that is under way.
	//
	// +optional
	Active *ActiveRestart `json:"active,omitempty"`

	// history tells of the last ticks, the latest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	History []RestartRecord `json:"history,omitempty"`

	// conditions: Ready (its reason is the STATUS column), Reconciling and
	// Stalled as kstatus defines them.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ActiveRestart is a restart that is under way.
type ActiveRestart struct {
	// scheduledTime is the tick. The pod template carries it as
	// kubectl.kubernetes.io/restartedAt.
	ScheduledTime metav1.Time `json:"scheduledTime"`

	// startedTime is when it was started.
	StartedTime metav1.Time `json:"startedTime"`

	// trigger is Schedule, or Request for one that was asked for by the
	// annotation tidekeeper.dev/restart-now.
	Trigger Trigger `json:"trigger"`

	// targetUID is the UID of the workload that is restarted.
	TargetUID string `json:"targetUID"`

	// targetRef names that workload; absent: spec.targetRef does. An edit of the
	// spec does not change it.
	//
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`
}

// Trigger is what asked for a restart.
//
// +kubebuilder:validation:Enum=Schedule;Request
type Trigger string

const (
	// TriggerSchedule is a tick of the schedule.
	TriggerSchedule Trigger = "Schedule"
	// TriggerRequest is the annotation tidekeeper.dev/restart-now.
	TriggerRequest Trigger = "Request"
)

// RestartRecord tells what became of a tick.
type RestartRecord struct {
	// scheduledTime is the tick.
	ScheduledTime metav1.Time `json:"scheduledTime"`

	// trigger of the restart.
	Trigger Trigger `json:"trigger"`

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

	// message says more, for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// pods is how many pods the target had when its restart was completed,
	// without those that were left out.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods,omitempty"`

	// podsLeftOut is how many pods of a DaemonSet were not waited for, as their
	// nodes were not ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodsLeftOut int32 `json:"podsLeftOut,omitempty"`

	// podStartup tells how long the new pods took to become ready. It is told
	// of a restart that succeeded, if the manager knows of pods.
	//
	// +optional
	PodStartup *PodStartup `json:"podStartup,omitempty"`

	// earlierTicks is how many ticks before this one shared its fate, for
	// instance while no manager ran; 1000 stands for that many or more.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	EarlierTicks int32 `json:"earlierTicks,omitempty"`
}

// PodStartup sums up how long the new pods of a restart took, each from its
// creation until it was ready. Pods tell it in whole seconds.
type PodStartup struct {
	// pods is how many are counted: those that were ready when the restart was
	// completed. What was gone again by then is not.
	//
	// +kubebuilder:validation:Minimum=1
	Pods int32 `json:"pods"`

	// medianSeconds is how long half of them took at most.
	//
	// +kubebuilder:validation:Minimum=0
	MedianSeconds int32 `json:"medianSeconds"`

	// maxSeconds is how long the slowest took.
	//
	// +kubebuilder:validation:Minimum=0
	MaxSeconds int32 `json:"maxSeconds"`

	// medianChangeSeconds is how much longer the median is than that of the
	// restart before, less than 0 if it is shorter. Absent if the history knew
	// of none.
	//
	// +optional
	MedianChangeSeconds *int32 `json:"medianChangeSeconds,omitempty"`

	// maxChangeSeconds is the same of the slowest.
	//
	// +optional
	MaxChangeSeconds *int32 `json:"maxChangeSeconds,omitempty"`
}

// Outcome is what became of a tick.
//
// +kubebuilder:validation:Enum=Succeeded;Failed;Skipped;Missed
type Outcome string

const (
	// OutcomeSucceeded means that all pods were replaced and are available.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed means that the restart was started and did not complete.
	OutcomeFailed Outcome = "Failed"
	// OutcomeSkipped means that there was nothing to do, or it must not be done.
	OutcomeSkipped Outcome = "Skipped"
	// OutcomeMissed means that it could not be started before its deadline.
	OutcomeMissed Outcome = "Missed"
)

// ScheduledRestart restarts a workload on a schedule, each tick once.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=eru,categories=tidekeeper
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`,description="The workload that is restarted"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`,description="The last tick that was started"
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`,description="The next tick"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRef.kind`,priority=1
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.timeZone`,priority=1
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.history[0].outcome`,priority=1,description="What became of the last tick"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="What the status means"
type ScheduledRestart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is restarted, and when.
	Spec ScheduledRestartSpec `json:"spec"`

	// status is what has happened and what is next.
	//
	// +optional
	Status ScheduledRestartStatus `json:"status,omitempty"`
}

// ScheduledRestartList is a list of ScheduledRestarts.
//
// +kubebuilder:object:root=true
type ScheduledRestartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ScheduledRestart `json:"items"`
}
