// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ScheduledRestartSpec defines the workload to restart and the triggers of its restarts.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || has(self.method) && self.method == 'Evict'",message="maxUnavailable is only for method: Evict; the workload has its own for a rollout"
// +kubebuilder:validation:XValidation:rule="has(self.method) && self.method == 'Evict' || (self.targetRef.apiVersion + '/' + self.targetRef.kind) in ['apps/v1/Deployment', 'apps/v1/StatefulSet', 'apps/v1/DaemonSet', 'argoproj.io/v1alpha1/Rollout']",message="apiVersion and kind must be apps/v1 and Deployment, StatefulSet or DaemonSet, or argoproj.io/v1alpha1 and Rollout; any other kind that has a scale subresource needs method: Evict"
// +kubebuilder:validation:XValidation:rule="!has(self.maxPodAgeSeconds) || (self.targetRef.apiVersion + '/' + self.targetRef.kind) in ['apps/v1/Deployment', 'apps/v1/StatefulSet', 'apps/v1/DaemonSet', 'argoproj.io/v1alpha1/Rollout']",message="maxPodAgeSeconds is not for a kind that is known by its scale subresource only"
// +kubebuilder:validation:XValidation:rule="!has(self.onConfigChange) || (self.targetRef.apiVersion + '/' + self.targetRef.kind) in ['apps/v1/Deployment', 'apps/v1/StatefulSet', 'apps/v1/DaemonSet', 'argoproj.io/v1alpha1/Rollout']",message="onConfigChange is not for a kind that is known by its scale subresource only"
type ScheduledRestartSpec struct {
	// targetRef is the workload to restart, in the same namespace.
	TargetRef TargetRef `json:"targetRef"`

	// schedule is a cron expression with five fields (minute, hour, day-of-month, month,
	// day-of-week), or one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly,
	// @annually. Each time at which it fires is a tick. Defaults to "0 0 * * *", or to no
	// schedule if maxPodAgeSeconds or onConfigChange is set. The manager writes the default
	// into the object when it first sees an object without any of the three fields, so that the
	// schedule stays when another trigger is added.
	//
	// +optional
	Schedule CronExpression `json:"schedule,omitempty"`

	// maxPodAgeSeconds is the maximum age of a pod of the workload, from 300 to 31536000 (five
	// minutes to one year). A restart is due when the oldest pod reaches that age, or in the
	// last window before then. Such a restart has no deadline: it waits until it can be
	// started. Defaults to no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=300
	// +kubebuilder:validation:Maximum=31536000
	MaxPodAgeSeconds int32 `json:"maxPodAgeSeconds,omitempty"`

	// onConfigChange restarts the workload when the content of the ConfigMaps that its pods use
	// changes (ConfigMaps), or of ConfigMaps and Secrets (ConfigMapsAndSecrets). Objects count
	// if the pod template uses them in env, envFrom or volumes; if the template uses single
	// keys, only these keys count. A restart is due when the content has not changed for ten
	// seconds and differs from the content that the pods were started with. Such a restart has
	// no deadline: it waits until it can be started. The manager must watch the objects: an
	// administrator enables that with --optional-watches. Defaults to no restarts for changes.
	//
	// +optional
	// +kubebuilder:validation:Enum=ConfigMaps;ConfigMapsAndSecrets
	OnConfigChange ConfigChange `json:"onConfigChange,omitempty"`

	// minIntervalSeconds is the minimum time between the starts of two restarts for changes,
	// from 1 to 86400 (one day), so that content that keeps changing does not keep restarting
	// the workload. It delays only restarts for changes, and only such a restart begins the
	// interval. Has no effect without onConfigChange. Defaults to 600.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	MinIntervalSeconds int32 `json:"minIntervalSeconds,omitempty"`

	// timeZone is the IANA name of the time zone of the schedule, for example Europe/Berlin.
	// Defaults to UTC.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*$') && self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be the IANA name of a time zone, for instance Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops the schedule. A restart in progress continues. Defaults to false.
	//
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// startingDeadlineSeconds is the time after a tick within which its restart may still be
	// started, from 1 to 86400 (one day). A tick not started by then is recorded as Missed.
	// Defaults to 900.
	//
	// +optional
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	StartingDeadlineSeconds int32 `json:"startingDeadlineSeconds,omitempty"`

	// spreadSeconds is the time after each tick over which the starts of restarts are spread,
	// from 0 to 86400 (one day). Each object starts at a fixed offset derived from its
	// namespace and name, so that not all objects restart at once. A restart for
	// maxPodAgeSeconds is spread over the same time before, not after, it is due. Defaults to
	// 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	SpreadSeconds int32 `json:"spreadSeconds,omitempty"`

	// windows are the times at which restarts may be started, whatever their trigger. Without
	// windows, restarts may start at any time. A tick of the schedule counts only if a window
	// is open at some time between the tick's start time and its deadline. A request waits
	// until a window opens. A restart is not started if, judged by the last one, it would not
	// finish before the window closes; a restart in progress continues when the window closes.
	// At most 8.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Windows []RestartWindow `json:"windows,omitempty"`

	// after lists names of ScheduledRestarts in the same namespace that must be restarted
	// first. A restart is not started until each of them has finished all restarts due at the
	// same time or earlier, nor while the last restart of one has failed, or one does not
	// exist; it waits until its deadline. ScheduledRestarts that form a cycle are not
	// restarted. At most 8.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="after must have names of ScheduledRestarts: lower-case letters, digits, '-' and '.'"
	After []string `json:"after,omitempty"`

	// method is Rollout, which changes the pod template like kubectl rollout restart, or Evict,
	// which evicts the pods older than the tick one after the other, so that
	// PodDisruptionBudgets are respected and the template does not change. Defaults to Rollout.
	//
	// +optional
	// +kubebuilder:validation:Enum=Rollout;Evict
	Method Method `json:"method,omitempty"`

	// maxUnavailable is the maximum number of pods that may be unavailable at a time because of
	// evictions: a number, or a percentage of the desired number of pods, rounded down but at
	// least one pod. Has no effect without the method Evict. Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be a number from 1 on, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// precondition is the state of the workload that a restart requires: Healthy, so that a
	// broken workload is not restarted, or None. Defaults to Healthy.
	//
	// +optional
	// +kubebuilder:default=Healthy
	// +kubebuilder:validation:Enum=Healthy;None
	Precondition Precondition `json:"precondition,omitempty"`

	// progressDeadlineSeconds is the time that a restart may take before it is recorded as
	// Failed, from 1 to 86400 (one day). Defaults to 1800.
	//
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// failureLimit is the number of consecutive failed restarts after which the schedule stops
	// until the spec is edited, from 1 to 100. Defaults to 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// historyLimit is the number of ticks that the history keeps, from 1 to 100. Defaults to
	// 10.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HistoryLimit int32 `json:"historyLimit,omitempty"`
}

// CronExpression is a cron expression with five fields (minute, hour, day-of-month, month,
// day-of-week), or one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="the time zone does not belong into the schedule: set timeZone"
// +kubebuilder:validation:XValidation:rule="self.contains('TZ=') || self.matches('^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$') || self.matches('^ *[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9A-Za-z*/,?]+ +[-0-9A-Za-z*/,?]+ *$')",message="schedule must have the five fields of cron, minute hour day-of-month month day-of-week, for instance '0 3 * * 1-5', or be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
// +kubebuilder:validation:XValidation:rule="self.contains('TZ=') || self.startsWith('@') || !self.matches('^ *[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9*/,?]+ +[-0-9A-Za-z*/,?]+ +[-0-9A-Za-z*/,?]+ *$') || self.matches('^ *([*?]|0*([0-5]?[0-9])(-0*([0-5]?[0-9]))?)(/[0-9]+)?(,([*?]|0*([0-5]?[0-9])(-0*([0-5]?[0-9]))?)(/[0-9]+)?)* +([*?]|0*(1?[0-9]|2[0-3])(-0*(1?[0-9]|2[0-3]))?)(/[0-9]+)?(,([*?]|0*(1?[0-9]|2[0-3])(-0*(1?[0-9]|2[0-3]))?)(/[0-9]+)?)* +([*?]|0*([1-9]|[12][0-9]|3[01])(-0*([1-9]|[12][0-9]|3[01]))?)(/[0-9]+)?(,([*?]|0*([1-9]|[12][0-9]|3[01])(-0*([1-9]|[12][0-9]|3[01]))?)(/[0-9]+)?)* +([*?]|(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(-(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))?)(/[0-9]+)?(,([*?]|(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(-(0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))?)(/[0-9]+)?)* +([*?]|(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat))(-(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat)))?)(/[0-9]+)?(,([*?]|(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat))(-(0*([0-7])|(?i:sun|mon|tue|wed|thu|fri|sat)))?)(/[0-9]+)?)* *$')",message="a field of schedule is wrong: minute is 0-59, hour 0-23, day-of-month 1-31, month 1-12 or jan-dec, day-of-week 0-7 or sun-sat; each '*', a number, a range 'a-b', a step '*/n', or several with commas"
type CronExpression string

// RestartWindow is a recurring period in which restarts may be started.
type RestartWindow struct {
	// schedule is a cron expression that defines when the window opens, in the time zone of
	// spec.timeZone.
	Schedule CronExpression `json:"schedule"`

	// durationSeconds is the time for which the window is open, from 60 to 604800 (a minute to
	// a week). Daylight saving time changes make it neither shorter nor longer.
	//
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	DurationSeconds int32 `json:"durationSeconds"`
}

// TargetRef identifies a workload in the same namespace.
type TargetRef struct {
	// apiVersion is the group and version of the kind: apps/v1, or argoproj.io/v1alpha1 for a
	// Rollout. Defaults to apps/v1.
	//
	// +optional
	// +kubebuilder:default="apps/v1"
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+$')",message="apiVersion must be the group and version of a kind, for instance apps/v1"
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is Deployment, StatefulSet, DaemonSet or Rollout. With the method Evict, any other
	// kind with a scale subresource that selects its pods is allowed, too.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the name of a kind, for instance Deployment"
	Kind string `json:"kind"`

	// name is the name of the workload.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be the name of a workload: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`
}

// Precondition is the state of the target that a restart requires.
type Precondition string

const (
	// PreconditionHealthy requires all pods of the target to be available.
	PreconditionHealthy Precondition = "Healthy"
	// PreconditionNone allows a restart in any state of the target.
	PreconditionNone Precondition = "None"
)

// Method is the way in which a workload is restarted.
type Method string

const (
	// MethodRollout changes the pod template, so that the workload's controller replaces the
	// pods. An empty method means the same.
	MethodRollout Method = "Rollout"
	// MethodEvict evicts the pods that are older than the tick.
	MethodEvict Method = "Evict"
)

// ScheduledRestart restarts a workload, once for each tick of a schedule, or when its pods
// become too old or the ConfigMaps and Secrets that they use change.
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
// +kubebuilder:printcolumn:name="Method",type=string,JSONPath=`.spec.method`,priority=1,description="Restart method; empty means Rollout"
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.history[0].outcome`,priority=1,description="Outcome of the last tick"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Explanation of the status"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.after) || !(self.metadata.name in self.spec.after)",message="after must not name the ScheduledRestart itself"
type ScheduledRestart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the workload to restart and the triggers of its restarts.
	Spec ScheduledRestartSpec `json:"spec"`

	// status is the observed state: the history of ticks, the current restart, and the next
	// tick.
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
