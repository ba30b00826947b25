// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names that a NodePool uses on other objects. They are part of the API: users and programs
// read them.
const (
	// RoleLabelPrefix is the prefix of the label node-role.kubernetes.io/<pool>, which makes a
	// node a member of a pool without a selector.
	RoleLabelPrefix = "node-role.kubernetes.io/"

	// OwnershipAnnotation on a Node is the ownership record: JSON that lists the settings each
	// pool has put on the node.
	OwnershipAnnotation = "tidekeeper.dev/node-pools"

	// NodePoolFinalizer keeps a deleted NodePool until its settings are removed from
	// every node.
	NodePoolFinalizer = "tidekeeper.dev/node-pool"

	// RuntimeClassPrefix is the prefix of the name of a pool's RuntimeClass: node-pool-<pool>.
	RuntimeClassPrefix = "node-pool-"
)

// NodePoolSpec is the desired state of the member nodes of a pool.
//
// +kubebuilder:validation:XValidation:rule="!has(self.handler) || !has(self.selector) || !has(self.selector.matchExpressions) || size(self.selector.matchExpressions) == 0",message="handler needs a selector that a RuntimeClass can repeat: use matchLabels only, or no selector"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || !has(self.selector) || !has(self.selector.matchLabels) || self.labels.all(k, !(k in self.selector.matchLabels) || self.selector.matchLabels[k] == self.labels[k])",message="labels must not change a label that the selector asks for: the pool would lose its own nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || !has(self.selector) || !has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, !(e.key in self.labels))",message="labels must not set a label that the selector asks for: the pool could lose its own nodes"
type NodePoolSpec struct {
	// selector selects the member nodes by their labels. If absent, the members are the nodes
	// with the label node-role.kubernetes.io/<name of the pool>, whatever its value. An empty
	// selector is refused, because every node would match.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector would take every node: name at least one label, or leave selector out to use the label node-role.kubernetes.io/<name>"
	Selector *NodeSelector `json:"selector,omitempty"`

	// labels are added to every member node. At most 64.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch', 'node.kubernetes.io/instance-type', 'node.kubernetes.io/windows-build']) && !k.startsWith('topology.kubernetes.io/') && !k.startsWith('beta.kubernetes.io/') && !k.startsWith('failure-domain.beta.kubernetes.io/') && !k.startsWith('kubelet.kubernetes.io/') && !k.startsWith('tidekeeper.dev/'))",message="a label of the kubelet, the cloud provider or Tidekeeper itself cannot be managed by a pool: kubernetes.io/hostname, kubernetes.io/os, kubernetes.io/arch, node.kubernetes.io/instance-type, node.kubernetes.io/windows-build, topology.kubernetes.io/*, beta.kubernetes.io/*, failure-domain.beta.kubernetes.io/*, kubelet.kubernetes.io/*, tidekeeper.dev/*"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are added to every member node. At most 64.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="an annotation key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['node.alpha.kubernetes.io/ttl', 'alpha.kubernetes.io/provided-node-ip', 'volumes.kubernetes.io/controller-managed-attach-detach', 'volumes.kubernetes.io/keep-terminated-pod-volumes', 'csi.volume.kubernetes.io/nodeid']) && !k.startsWith('kubeadm.alpha.kubernetes.io/') && !k.startsWith('tidekeeper.dev/'))",message="an annotation of the kubelet, the cloud provider, kubeadm or Tidekeeper itself cannot be managed by a pool: node.alpha.kubernetes.io/ttl, alpha.kubernetes.io/provided-node-ip, volumes.kubernetes.io/controller-managed-attach-detach, volumes.kubernetes.io/keep-terminated-pod-volumes, csi.volume.kubernetes.io/nodeid, kubeadm.alpha.kubernetes.io/*, tidekeeper.dev/*"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`

	// taints are added to every member node. A taint with the effect NoExecute removes pods and
	// is therefore added to a limited share of the nodes at a time. At most 32.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, !t.key.startsWith('node.kubernetes.io/') && !t.key.startsWith('node.cloudprovider.kubernetes.io/') && !t.key.startsWith('tidekeeper.dev/'))",message="a taint of the node lifecycle controller, the cloud provider or Tidekeeper itself cannot be managed by a pool: node.kubernetes.io/*, node.cloudprovider.kubernetes.io/*, tidekeeper.dev/*"
	Taints []Taint `json:"taints,omitempty"`

	// handler is the handler of the pool's RuntimeClass, for example runc. If set, the pool
	// owns the RuntimeClass node-pool-<name of the pool>. Pods with that RuntimeClass are
	// scheduled to the pool's nodes and tolerate the pool's taints.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Handler string `json:"handler,omitempty"`

	// headroom is the loss of nodes or zones that the pool should survive with a place
	// elsewhere for each pod. No resources are reserved: the condition Headroom and a metric
	// report whether the pods would fit.
	//
	// +optional
	Headroom *Headroom `json:"headroom,omitempty"`

	// drainable enables the evaluation of whether each node of the pool could be drained. No pod is
	// moved: the condition Drainable and metrics report the pods that a drain would not remove, or
	// not without harm.
	//
	// +optional
	Drainable *Drainable `json:"drainable,omitempty"`

	// nodeTemplate describes a node that would be added to the pool, for example by an
	// autoscaler. No node is added: the plugin uses it to tell how many copies of a pod fit on
	// new nodes.
	//
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`
}

// Headroom is the number of nodes or zones of a pool that may be lost at the same time.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodes) || has(self.zones)",message="headroom needs nodes, zones or both: nodes: 1 asks for a place for the pods of any one node"
type Headroom struct {
	// nodes is the number of nodes that may be lost at the same time. Only 1 is supported: any
	// one node of the pool.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1
	Nodes int32 `json:"nodes,omitempty"`

	// zones is the number of zones that may be lost at the same time. Only 1 is supported: any
	// one value of the label topology.kubernetes.io/zone, with all of its nodes, including
	// nodes of other pools.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1
	Zones int32 `json:"zones,omitempty"`
}

// NodeSelector selects nodes by their labels. A node must satisfy all of matchLabels and all of
// matchExpressions. The type is a metav1.LabelSelector with bounds, which keep the cost of its
// validation rules within the limits of the API server.
type NodeSelector struct {
	// matchLabels is a map of labels that a node must have, with exactly these values. At most
	// 32.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions is a list of label requirements, all of which a node must satisfy. At
	// most 32.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// NodeSelectorRequirement is a requirement on one label of a node.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",message="In and NotIn need values; Exists and DoesNotExist take none"
type NodeSelectorRequirement struct {
	// key is the label key that the requirement applies to.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a label key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	Key string `json:"key"`

	// operator relates the label to the values: In, NotIn, Exists or DoesNotExist.
	//
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values is the list of label values for the operators In and NotIn, which need at least
	// one. Must be empty for Exists and DoesNotExist. At most 64.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="a label value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Values []LabelValue `json:"values,omitempty"`
}

// Taint is a taint that a pool adds to its nodes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.eviction) || self.effect == 'NoExecute'",message="eviction is for taints with the effect NoExecute"
type Taint struct {
	// key is the key of the taint.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a taint key must be a qualified name: letters, digits, '-', '_' and '.', at most 63 of them, after an optional DNS prefix and '/'"
	Key string `json:"key"`

	// value is the value of the taint. Defaults to the empty string.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="a taint value must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Value LabelValue `json:"value,omitempty"`

	// effect is the effect on pods that do not tolerate the taint: NoSchedule, PreferNoSchedule
	// or NoExecute.
	//
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`

	// eviction is the way in which a NoExecute taint removes pods. Immediate: the taint is added at
	// once, which deletes the pods. WithinBudgets: the pods are evicted within their
	// PodDisruptionBudgets before the taint is added. Defaults to Immediate.
	//
	// +optional
	// +kubebuilder:validation:Enum=Immediate;WithinBudgets
	Eviction TaintEviction `json:"eviction,omitempty"`
}

// TaintEviction is the way in which pods are removed from a node that gets a NoExecute taint.
type TaintEviction string

const (
	// TaintEvictionImmediate adds the taint at once, so that Kubernetes deletes the pods.
	TaintEvictionImmediate TaintEviction = "Immediate"
	// TaintEvictionWithinBudgets evicts the pods within their PodDisruptionBudgets before it
	// adds the taint.
	TaintEvictionWithinBudgets TaintEviction = "WithinBudgets"
)

// LabelValue is the value of a label or a taint.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// AnnotationValue is the value of an annotation, limited to 1,024 characters because all pools
// of a node share the 256 KiB that Kubernetes allows for its annotations.
//
// +kubebuilder:validation:MaxLength=1024
type AnnotationValue string

// NodePool manages labels, annotations and taints of a group of nodes, and reports the
// utilization of the group.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=npool,categories=tidekeeper
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="NodeCount",type=integer,JSONPath=`.status.nodeCount`,description="Member nodes"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyNodes`,description="Member nodes that are Ready"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.summary.cpu`,description="CPU requested of allocatable, in cores and percent"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.summary.memory`,description="Memory requested of allocatable, in bytes and percent"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.summary.pods`,description="Pods bound, of allocatable, with percent"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Usable",type=integer,JSONPath=`.status.usableNodes`,priority=1,description="Member nodes on which new pods can start"
// +kubebuilder:printcolumn:name="Headroom",type=string,JSONPath=`.status.conditions[?(@.type=="Headroom")].status`,priority=1,description="Whether the pods of a lost node or zone would fit elsewhere, if the spec asks for headroom"
// +kubebuilder:printcolumn:name="Drainable",type=string,JSONPath=`.status.conditions[?(@.type=="Drainable")].status`,priority=1,description="Whether all pods would leave a node that is drained, if the spec asks"
// +kubebuilder:printcolumn:name="Handler",type=string,JSONPath=`.spec.handler`,priority=1,description="Handler of the RuntimeClass"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="Explanation of the status"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must be at most 63 characters: it becomes part of the label node-role.kubernetes.io/<name>"
// +kubebuilder:validation:XValidation:rule="has(self.spec.selector) || !has(self.spec.labels) || !(('node-role.kubernetes.io/' + self.metadata.name) in self.spec.labels)",message="labels must not set the label that makes a node a member of this pool"
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the member nodes.
	Spec NodePoolSpec `json:"spec"`

	// status is the observed state of the pool.
	//
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}
