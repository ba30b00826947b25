// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeMaintenanceSpec defines which nodes are emptied for maintenance, when, how many at a time,
// and what ends the maintenance of a node.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) || !has(self.timeZone) || has(self.windows)",message="timeZone needs a schedule or windows"
type NodeMaintenanceSpec struct {
	// nodes selects the nodes to maintain.
	Nodes MaintenanceNodes `json:"nodes"`

	// until is the event that ends the maintenance of a drained node and puts the node back into
	// use. AnnotationRemoved: another client removes the annotation
	// tidekeeper.dev/drained-for-maintenance from the node. Rebooted: the boot ID of the node
	// changes. Upgraded: the kubelet version of the node changes. Replaced: the Node is deleted.
	// Drained: the node is put back into use as soon as it is drained, which only moves its pods to
	// other nodes. With any value, removing the annotation or deleting the Node also ends the
	// maintenance of the node. Defaults to AnnotationRemoved.
	//
	// +optional
	// +kubebuilder:default=AnnotationRemoved
	// +kubebuilder:validation:Enum=AnnotationRemoved;Rebooted;Upgraded;Replaced;Drained
	Until MaintenanceEnd `json:"until,omitempty"`

	// schedule is a cron expression. Each tick begins a new round, in which every selected node is
	// maintained once. If a round is still in progress, it is completed first. Defaults to a single
	// round, which begins when the object is created.
	//
	// +optional
	Schedule CronExpression `json:"schedule,omitempty"`

	// windows are the times at which drains may begin. Without windows, drains may begin at any
	// time. A drain that has begun continues after the end of the window. At most 8.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Windows []RestartWindow `json:"windows,omitempty"`

	// timeZone is the IANA name of the time zone of the schedule and the windows, for example
	// Europe/Berlin. Defaults to UTC.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// maxUnavailable is the maximum number of selected nodes that may be unavailable at a time: a
	// number, or a percentage of the selected nodes, rounded down but at least 1. Nodes that are
	// not ready, or were cordoned by another client, count as unavailable. Defaults to 1.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxUnavailable must be a number from 1 on, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxUnavailablePerZone is the maximum number of selected nodes in each zone that may be
	// unavailable at a time. Defaults to no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxUnavailablePerZone int32 `json:"maxUnavailablePerZone,omitempty"`

	// requirePlace is true if a node is drained only while other nodes have room for its pods.
	// Defaults to true.
	//
	// +optional
	// +kubebuilder:default=true
	RequirePlace *bool `json:"requirePlace,omitempty"`

	// singleReplicas is the treatment of pods whose eviction would take down their workload,
	// because all ready pods of the workload are on the drained node, or because its
	// PodDisruptionBudget never allows a disruption. Restart: the workload is restarted, so that
	// its new pods are ready on other nodes before the old pods are deleted. Pods of workloads that
	// do not support this are evicted. Evict: the pods are evicted within their budgets. Defaults
	// to Restart.
	//
	// +optional
	// +kubebuilder:default=Restart
	// +kubebuilder:validation:Enum=Restart;Evict
	SingleReplicas SingleReplicas `json:"singleReplicas,omitempty"`

	// unmanagedPods is the treatment of pods that no controller would recreate. Keep: nodes with
	// such pods are not drained. Evict: the pods are evicted and not recreated. Defaults to Keep.
	//
	// +optional
	// +kubebuilder:default=Keep
	// +kubebuilder:validation:Enum=Keep;Evict
	UnmanagedPods UnmanagedPods `json:"unmanagedPods,omitempty"`

	// drainTimeoutSeconds is the maximum duration of the drain of a node, from 60 to 86400 (one
	// day). If the node still has pods to move after that, its maintenance has failed, and the node
	// is put back into use. Defaults to 3600.
	//
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	DrainTimeoutSeconds int32 `json:"drainTimeoutSeconds,omitempty"`

	// maintenanceTimeoutSeconds is the maximum time from the end of a node's drain until the node
	// is ready again, from 60 to 604800 (one week). If the node is not ready after that, its
	// maintenance has failed, and the node stays cordoned until the maintenance is complete.
	// Defaults to 86400 (one day).
	//
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	MaintenanceTimeoutSeconds int32 `json:"maintenanceTimeoutSeconds,omitempty"`

	// failureLimit is the number of failed nodes in a round after which no further drain begins
	// until the spec is edited, from 1 to 100. Defaults to 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureLimit int32 `json:"failureLimit,omitempty"`

	// suspend is true if no drain begins and no pod is moved. Drained nodes stay drained until
	// their maintenance is complete. Defaults to false.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// MaintenanceNodes selects nodes by pool, by name, or by label.
//
// +kubebuilder:validation:XValidation:rule="(has(self.pools) ? 1 : 0) + (has(self.names) ? 1 : 0) + (has(self.selector) ? 1 : 0) == 1",message="nodes needs one of pools, names and selector"
type MaintenanceNodes struct {
	// pools are names of NodePools. All nodes of a pool are maintained before the nodes of the next
	// pool. At most 32.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Pools []string `json:"pools,omitempty"`

	// names are names of nodes. At most 256.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// selector selects nodes by their labels.
	//
	// +optional
	Selector *NodeSelector `json:"selector,omitempty"`

	// outdated limits the selection to outdated nodes. Defaults to all nodes.
	//
	// +optional
	Outdated *OutdatedNodes `json:"outdated,omitempty"`
}

// OutdatedNodes selects nodes by version or age. A node is outdated if it meets one of the
// conditions.
//
// +kubebuilder:validation:XValidation:rule="has(self.kubeletVersionNot) || has(self.minAgeSeconds)",message="outdated needs kubeletVersionNot, minAgeSeconds or both"
type OutdatedNodes struct {
	// kubeletVersionNot selects nodes whose kubelet has another version than this one, for example
	// v1.37.2.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	KubeletVersionNot string `json:"kubeletVersionNot,omitempty"`

	// minAgeSeconds selects nodes whose Node object has at least this age, from 60 to 315360000
	// (ten years).
	//
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=315360000
	MinAgeSeconds int32 `json:"minAgeSeconds,omitempty"`
}

// NodeMaintenanceStatus is the observed state of a maintenance.
type NodeMaintenanceStatus struct {
	// observedGeneration is the generation of the spec that this status was computed from.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// roundTime identifies the current or last round: the tick of the schedule that began it, or
	// the creation time of the object.
	//
	// +optional
	RoundTime *metav1.Time `json:"roundTime,omitempty"`

	// nextRoundTime is the next tick of the schedule.
	//
	// +optional
	NextRoundTime *metav1.Time `json:"nextRoundTime,omitempty"`

	// nodes is the progress of each node whose drain has begun in this round, keyed by node name.
	//
	// +optional
	Nodes map[string]NodeProgress `json:"nodes,omitempty"`

	// selected is the number of nodes in this round: the currently selected nodes, and the nodes in
	// nodes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Selected int32 `json:"selected,omitempty"`

	// done is the number of nodes whose maintenance is complete.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Done int32 `json:"done,omitempty"`

	// running is the number of nodes that are being drained, are drained, or are waiting to become
	// ready again.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Running int32 `json:"running,omitempty"`

	// failed is the number of nodes whose maintenance has failed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed,omitempty"`

	// toleratedFailures is the number of failed nodes that no longer count towards
	// spec.failureLimit, because the spec was edited after they failed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ToleratedFailures int32 `json:"toleratedFailures,omitempty"`

	// conditions are Ready, Reconciling and Stalled as defined by kstatus. The STATUS column shows
	// the reason of Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeProgress is the progress of the maintenance of a node.
type NodeProgress struct {
	// uid is the UID of the Node.
	UID types.UID `json:"uid"`

	// phase is the current step of the maintenance of the node.
	//
	// +kubebuilder:validation:Enum=Draining;Drained;Returning;Done;Failed;Released
	Phase NodePhase `json:"phase"`

	// since is the time at which the phase began.
	Since metav1.Time `json:"since"`

	// startTime is the time at which the drain began.
	StartTime metav1.Time `json:"startTime"`

	// cordoned is true while the node is cordoned by the manager for this round.
	//
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`

	// marked is true once the node has the annotation tidekeeper.dev/drained-for-maintenance.
	//
	// +optional
	Marked bool `json:"marked,omitempty"`

	// heldSince is the time since which a Freeze or spec.suspend has held back the drain. This time
	// does not count towards the timeout.
	//
	// +optional
	HeldSince *metav1.Time `json:"heldSince,omitempty"`

	// bootID is the boot ID that the node had when it was drained.
	//
	// +optional
	BootID string `json:"bootID,omitempty"`

	// kubeletVersion is the kubelet version that the node had when it was drained.
	//
	// +optional
	KubeletVersion string `json:"kubeletVersion,omitempty"`

	// reason is a machine-readable reason why the node is waiting or has failed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message is a human-readable explanation of the reason, with at most 256 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// NodeMaintenance empties nodes for maintenance, a few at a time, without taking workloads down.
// Tidekeeper does not reboot, upgrade or delete nodes: it drains each node, marks it as drained,
// waits until its maintenance is complete, and puts it back into use.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nmaint,categories=tidekeeper
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name is at most 63 characters long"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.selected`,description="Nodes of this round"
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=`.status.done`,description="Nodes that are in use again"
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`,description="Nodes that are being drained, are drained, or are returning"
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`,description="Nodes that have failed"
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextRoundTime`,description="The next round"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`,priority=1,description="What ends the maintenance of a node"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Explanation of the status"
type NodeMaintenance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the nodes to maintain.
	Spec NodeMaintenanceSpec `json:"spec"`

	// status is the observed state: the progress of each node.
	//
	// +optional
	Status NodeMaintenanceStatus `json:"status,omitempty"`
}

// NodeMaintenanceList is a list of NodeMaintenances.
//
// +kubebuilder:object:root=true
type NodeMaintenanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeMaintenance `json:"items"`
}
