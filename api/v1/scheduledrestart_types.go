// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ScheduledRestartSpec says what is restarted, and when.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || has(self.method) && self.method == 'Evict'",message="maxUnavailable is only for method: Evict; the workload has its own for a rollout"
// +kubebuilder:validation:XValidation:rule="has(self.method) && self.method == 'Evict' || (self.targetRef.apiVersion + '/' + self.targetRef.kind) in ['apps/v1/Deployment', 'apps/v1/StatefulSet', 'apps/v1/DaemonSet', 'argoproj.io/v1alpha1/Rollout']",message="apiVersion and kind must be apps/v1 and Deployment, StatefulSet or DaemonSet, or argoproj.io/v1alpha1 and Rollout; any other kind that has a scale subresource needs method: Evict"
// +kubebuilder:validation:XValidation:rule="!has(self.maxPodAgeSeconds) || (self.targetRef.apiVersion + '/' + self.targetRef.kind) in ['apps/v1/Deployment', 'apps/v1/StatefulSet', 'apps/v1/DaemonSet', 'argoproj.io/v1alpha1/Rollout']",message="maxPodAgeSeconds is not for a kind that is known by its scale subresource only"
// +kubebuilder:validation:XValidation:rule="!has(self.onConfigChange) || (self.targetRef.apiVersion + '/' + self.targetRef.kind) in ['apps/v1/Deployment', 'apps/v1/StatefulSet', 'apps/v1/DaemonSet', 'argoproj.io/v1alpha1/Rollout']",message="onConfigChange is not for a kind that is known by its scale subresource only"
type ScheduledRestartSpec struct {
	// targetRef names the workload, in the same namespace.
	TargetRef TargetRef `json:"targetRef"`

	// schedule defines the ticks: the five fields of cron (minute, hour,
	// day-of-month, month, day-of-week), or one of @hourly, @daily,
	// @midnight, @weekly, @monthly, @yearly, @annually. Default: "0 0 * * *", or no
	// schedule if maxPodAgeSeconds or onConfigChange is given. The manager writes the default
	// here when it first sees an object that has none of the three, so that it stays when one
	// of them is added.
	//
	// +optional
	Schedule CronExpression `json:"schedule,omitempty"`

	// maxPodAgeSeconds is how old a pod of the workload may become, from its creation. A
	// restart is due when the oldest pod reaches that age, or in a window, if it would reach
	// it before the next one opens. Such a restart has no deadline: it waits until it can be
	// started. Default: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=300
	// +kubebuilder:validation:Maximum=31536000
	MaxPodAgeSeconds int32 `json:"maxPodAgeSeconds,omitempty"`

	// onConfigChange is ConfigMaps if a change of the content of the ConfigMaps that the pods
	// use is to restart the workload, or ConfigMapsAndSecrets for that of Secrets, too. What
	// counts is what the pod template uses in env, envFrom and volumes; of single keys only
	// these. A restart is due when the content has not changed for ten seconds and is not
	// what the pods were started with. It has no deadline: it waits until it can be started.
	// The manager needs the right to read them, which an administrator grants by its
	// controllers configmap-change and secret-change. Default: a change triggers nothing.
	//
	// +optional
	// +kubebuilder:validation:Enum=ConfigMaps;ConfigMapsAndSecrets
	OnConfigChange ConfigChange `json:"onConfigChange,omitempty"`

	// minIntervalSeconds is the least time from the start of a restart for a change of that
	// content to the start of the next one, so that content that changes all the time does not
	// restart the workload all the time. It delays no tick of the schedule, no restart for the
	// age of pods and no request, and none of these begins it. Only with onConfigChange.
	// Default: 600.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	MinIntervalSeconds int32 `json:"minIntervalSeconds,omitempty"`

	// timeZone of the schedule, by its IANA name, for example Europe/Berlin. Default: UTC.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*$') && self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be the IANA name of a time zone, for instance Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops the schedule. A restart in progress continues. Default: false.
	//
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// startingDeadlineSeconds is how long after its time a restart may still
	// be started. After that it is Missed, and not started late. Default: 900.
	//
	// +optional
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartingDeadlineSeconds int32 `json:"startingDeadlineSeconds,omitempty"`

	// spreadSeconds is the time after each tick in which the restart is
	// started, at an offset that is derived from namespace and name, so that
	// not all objects start at once. A restart for the age of pods is started in
	// that time before it would be due. Default: 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	SpreadSeconds int32 `json:"spreadSeconds,omitempty"`

	// windows are when a restart may be started, whatever triggers it; without any, at all
	// times. A tick of the schedule counts only if a window is open at some time from when
	// its restart is due until its deadline. A request waits until a window opens. What has
	// been started when a window closes continues, and what takes longer than is left of it,
	// as the last restart did, is not started.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Windows []RestartWindow `json:"windows,omitempty"`

	// after names ScheduledRestarts of this namespace that come first: a restart is not
	// started before these have finished what was due at the same time or earlier, nor
	// while the last restart of one of them has failed, or while one does not exist. It
	// waits until its deadline. ScheduledRestarts that come after each other restart
	// nothing.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="after must have names of ScheduledRestarts: lower-case letters, digits, '-' and '.'"
	After []string `json:"after,omitempty"`

	// method is Rollout, by a change of the pod template as kubectl rollout restart makes
	// it, or Evict: the pods that are older than the tick are evicted one after the other,
	// so that PodDisruptionBudgets hold and no template changes. Default: Rollout.
	//
	// +optional
	// +kubebuilder:validation:Enum=Rollout;Evict
	Method Method `json:"method,omitempty"`

	// maxUnavailable is how many pods may be unavailable at a time because they are evicted:
	// a number, or a percentage of the pods that there should be, rounded down and at least
	// one pod. Only with the method Evict. Default: 1.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be a number from 1 on, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// precondition is Healthy, so that a workload that is already broken is not
	// restarted, or None. Default: Healthy.
	//
	// +optional
	// +kubebuilder:default=Healthy
	// +kubebuilder:validation:Enum=Healthy;None
	Precondition Precondition `json:"precondition,omitempty"`

	// progressDeadlineSeconds is how long a restart may take before it is
	// recorded as Failed. Default: 1800.
	//
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// failureLimit is how many failures in a row stop the schedule, until the
	// spec is edited. Default: 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// historyLimit is how many ticks the history keeps. Default: 10.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HistoryLimit int32 `json:"historyLimit,omitempty"`
}

// CronExpression is a schedule: the five fields of cron (minute, hour, day-of-month, month,
// day-of-week), or one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="the time zone does not belong into the schedule: set timeZone"
// +kubebuilder:validation:XValidation:rule="self.contains('TZ=') || self.matches('^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$') || self.matches('^ *[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9A-Za-z*/,?]+ +[-0-9A-Za-z*/,?]+ *$')",message="schedule must have the five fields of cron, minute hour day-of-month month day-of-week, for instance '0 3 * * 1-5', or be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
// +kubebuilder:validation:XValidation:rule="self.contains('TZ=') || self.startsWith('@') || !self.matches('^ *[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9A-Za-z*/,?]+ +[-0-9A-Za-z*/,?]+ *$') || self.matches('^ *([*?]|0*([0-5]?[0-9])(-0*([0-5]?[0-9]))?)(/[0-9]+)?(,([*?]|0*([0-5]?[0-9])(-0*([0-5]?[0-9]))?)(/[0-9]+)?)* +([*?]|0*(1?[0-9]|2[0-3])(-0*(1?[0-9]|2[0-3]))?)(/[0-9]+)?(,([*?]|0*(1?[0-9]|2[0-3])(-0*(1?[0-9]|2[0-3]))?)(/[0-9]+)?)* +([*?]|0*([1-9]|[12][0-9]|3[01])(-0*([1-9]|[12][0-9]|3[01]))?)(/[0-9]+)?(,([*?]|0*([1-9]|[12][0-9]|3[01])(-0*([1-9]|[12][0-9]|3[01]))?)(/[0-9]+)?)* +([*?]|(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(-(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))?)(/[0-9]+)?(,([*?]|(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(-(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))?)(/[0-9]+)?)* +([*?]|(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat))(-(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat)))?)(/[0-9]+)?(,([*?]|(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat))(-(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat)))?)(/[0-9]+)?)* *$')",message="a field of schedule is wrong: minute is 0-59, hour 0-23, day-of-month 1-31, month 1-12 or jan-dec, day-of-week 0-7 or sun-sat; each '*', a number, a range 'a-b', a step '*/n', or several with commas"
type CronExpression string

// RestartWindow is a time in which restarts may be started.
type RestartWindow struct {
	// schedule is when the window opens: an expression like that of spec.schedule, in the
	// time zone of spec.timeZone.
	Schedule CronExpression `json:"schedule"`

	// durationSeconds is how long the window is open, from a minute to a week. A change of
	// the clock makes it neither shorter nor longer.
	//
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	DurationSeconds int32 `json:"durationSeconds"`
}

// TargetRef names a workload in the same namespace.
type TargetRef struct {
	// apiVersion is the group and version of the kind: apps/v1, or
	// argoproj.io/v1alpha1 for a Rollout. Default: apps/v1.
	//
	// +optional
	// +kubebuilder:default="apps/v1"
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$')",message="apiVersion must be the group and version of a kind, for instance apps/v1"
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is Deployment, StatefulSet, DaemonSet or Rollout. With the method Evict it may also
	// be any other kind that has a scale subresource, which names its pods.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the name of a kind, for instance Deployment"
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
	// PreconditionHealthy requires all pods of the target to be available.
	PreconditionHealthy Precondition = "Healthy"
	// PreconditionNone restarts the target whatever its state.
	PreconditionNone Precondition = "None"
)

// Method is how a workload is restarted.
type Method string

const (
	// MethodRollout changes the pod template, so that the workload's controller replaces the
	// pods. An empty method means the same.
	MethodRollout Method = "Rollout"
	// MethodEvict evicts the pods that are older than the tick.
	MethodEvict Method = "Evict"
)

// ScheduledRestart restarts a workload on a schedule, once for each tick, or when its pods
// become too old.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={srestart,eru,erus},categories=tidekeeper
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRef.kind`,description="The kind of the workload"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`,description="The workload that is restarted"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`,description="The last tick that was started"
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`,description="The next tick"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.timeZone`,priority=1
// +kubebuilder:printcolumn:name="Method",type=string,JSONPath=`.spec.method`,priority=1,description="Rollout if it is empty"
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.history[0].outcome`,priority=1,description="What became of the last tick"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="What the status means"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.after) || !(self.metadata.name in self.spec.after)",message="after must not name the ScheduledRestart itself"
type ScheduledRestart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is restarted, and when.
	Spec ScheduledRestartSpec `json:"spec"`

	// status is the history of restarts, the current restart, and what is next.
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
