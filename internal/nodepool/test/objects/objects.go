// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects builds pools, nodes and pods for the tests of the NodePool packages.
package objects

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// The builders of this file are named so that a table row reads as a sentence:
//
//	Node("a").Label("zone", "1").Taint("gpu", "yes", corev1.TaintEffectNoSchedule)
//	Pool("worker").Labels("zone", "1").CreatedAt(2)
//	Pod("web").On("a").Requests("100m", "64Mi")
//
// Pools are active unless the row specifies otherwise: they have their finalizer, and manage all
// keys of their spec.

// NodeBuilder builds a node.
type NodeBuilder struct{ node corev1.Node }

// Node returns a builder for a node with only a name.
func Node(name string) *NodeBuilder {
	return &NodeBuilder{corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("node-" + name), ResourceVersion: "1",
	}}}
}

// Label adds a label to the node.
func (m *NodeBuilder) Label(key, value string) *NodeBuilder {
	m.node.Labels = With(m.node.Labels, key, value)
	return m
}

// Role adds the role label node-role.kubernetes.io/<pool> of the named pool.
func (m *NodeBuilder) Role(pool string) *NodeBuilder {
	return m.Label(tidekeeperv1.RoleLabelPrefix+pool, "")
}

// Annotation adds an annotation to the node.
func (m *NodeBuilder) Annotation(key, value string) *NodeBuilder {
	m.node.Annotations = With(m.node.Annotations, key, value)
	return m
}

// Taint appends a taint to the node's taints.
func (m *NodeBuilder) Taint(key, value string, effect corev1.TaintEffect) *NodeBuilder {
	m.node.Spec.Taints = append(m.node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	return m
}

// TaintAt appends a taint with the given timeAdded to the node's taints.
func (m *NodeBuilder) TaintAt(key, value string, effect corev1.TaintEffect, added time.Time) *NodeBuilder {
	m.Taint(key, value, effect)
	m.node.Spec.Taints[len(m.node.Spec.Taints)-1].TimeAdded = &metav1.Time{Time: added}
	return m
}

// Owned adds an entry to the node's ownership annotation which records that the pool has set the
// key to the value. It does not change the setting itself.
func (m *NodeBuilder) Owned(pool string, s setting.Key, value string) *NodeBuilder {
	r, err := ownership.Parse(m.node.Annotations[tidekeeperv1.OwnershipAnnotation])
	if err != nil {
		panic(err)
	}
	r.Put(pool, s, ownership.DigestOf(s, value))
	return m.Annotation(tidekeeperv1.OwnershipAnnotation, r.Text(ownership.ParseClosed(m.node.Annotations[tidekeeperv1.OwnershipAnnotation])))
}

// Closed adds an entry to the node's ownership annotation with the time at which the pool closed
// the node to new pods for its NoExecute taint with the given key. It adds no taint.
func (m *NodeBuilder) Closed(pool, key string, since time.Time) *NodeBuilder {
	r, err := ownership.Parse(m.node.Annotations[tidekeeperv1.OwnershipAnnotation])
	if err != nil {
		panic(err)
	}
	closed := ownership.ParseClosed(m.node.Annotations[tidekeeperv1.OwnershipAnnotation]).With(pool, key, since)
	return m.Annotation(tidekeeperv1.OwnershipAnnotation, r.Text(closed))
}

// LabelOf adds a label to the node, and records in the ownership annotation that the pool has set
// it.
func (m *NodeBuilder) LabelOf(pool, key, value string) *NodeBuilder {
	return m.Label(key, value).Owned(pool, setting.LabelKey(key), value)
}

// AnnotationOf adds an annotation to the node, and records in the ownership annotation that the
// pool has set it.
func (m *NodeBuilder) AnnotationOf(pool, key, value string) *NodeBuilder {
	return m.Annotation(key, value).Owned(pool, setting.AnnotationKey(key), value)
}

// TaintOf appends a taint to the node, and records in the ownership annotation that the pool has
// set it.
func (m *NodeBuilder) TaintOf(pool, key, value string, effect corev1.TaintEffect) *NodeBuilder {
	return m.Taint(key, value, effect).Owned(pool, setting.TaintKey(key, effect), value)
}

// OwnershipText sets the ownership annotation to an arbitrary string.
func (m *NodeBuilder) OwnershipText(text string) *NodeBuilder {
	return m.Annotation(tidekeeperv1.OwnershipAnnotation, text)
}

// ResourceVersion sets the resourceVersion of the node.
func (m *NodeBuilder) ResourceVersion(version string) *NodeBuilder {
	m.node.ResourceVersion = version
	return m
}

// Ready sets the status of the node's condition Ready.
func (m *NodeBuilder) Ready(status corev1.ConditionStatus) *NodeBuilder {
	m.node.Status.Conditions = append(m.node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: status})
	return m
}

// Capacity adds a resource to the node's capacity and allocatable resources.
func (m *NodeBuilder) Capacity(name corev1.ResourceName, quantity string) *NodeBuilder {
	m.node.Status.Capacity = With(m.node.Status.Capacity, name, resource.MustParse(quantity))
	return m.Allocatable(name, quantity)
}

// Allocatable adds a resource to the node's allocatable resources, but not to its capacity.
func (m *NodeBuilder) Allocatable(name corev1.ResourceName, quantity string) *NodeBuilder {
	m.node.Status.Allocatable = With(m.node.Status.Allocatable, name, resource.MustParse(quantity))
	return m
}

// Obj returns a copy of the node.
func (m *NodeBuilder) Obj() *corev1.Node { return m.node.DeepCopy() }

// PoolBuilder builds a NodePool.
type PoolBuilder struct{ pool tidekeeperv1.NodePool }

// Epoch is the creation time of pools built with CreatedAt(0).
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Pool returns a builder for a pool that selects nodes by its role label and has no settings.
func Pool(name string) *PoolBuilder {
	return &PoolBuilder{tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("pool-" + name), ResourceVersion: "1", Generation: 1,
		CreationTimestamp: metav1.NewTime(Epoch),
		Finalizers:        []string{tidekeeperv1.NodePoolFinalizer},
	}}}
}

// PoolFrom returns a builder that starts with a copy of the pool.
func PoolFrom(pool *tidekeeperv1.NodePool) *PoolBuilder { return &PoolBuilder{*pool.DeepCopy()} }

// Spec replaces the spec of the pool.
func (m *PoolBuilder) Spec(spec tidekeeperv1.NodePoolSpec) *PoolBuilder {
	m.pool.Spec = spec
	return m
}

// CreatedAt sets the creation time, in seconds after [Epoch].
func (m *PoolBuilder) CreatedAt(n int) *PoolBuilder {
	m.pool.CreationTimestamp = metav1.NewTime(Epoch.Add(time.Duration(n) * time.Second))
	return m
}

// MatchLabels makes the pool select nodes by labels, given as alternating keys and values.
func (m *PoolBuilder) MatchLabels(pairs ...string) *PoolBuilder {
	s := m.selector()
	for pair := range slices.Chunk(pairs, 2) {
		s.MatchLabels = With(s.MatchLabels, pair[0], tidekeeperv1.LabelValue(pair[1]))
	}
	return m
}

// MatchExpression makes the pool select nodes by a label selector requirement.
func (m *PoolBuilder) MatchExpression(key string, operator metav1.LabelSelectorOperator, values ...tidekeeperv1.LabelValue) *PoolBuilder {
	s := m.selector()
	s.MatchExpressions = append(s.MatchExpressions, tidekeeperv1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values})
	return m
}

func (m *PoolBuilder) selector() *tidekeeperv1.NodeSelector {
	if m.pool.Spec.Selector == nil {
		m.pool.Spec.Selector = &tidekeeperv1.NodeSelector{}
	}
	return m.pool.Spec.Selector
}

// Labels adds labels to the pool's spec, given as alternating keys and values.
func (m *PoolBuilder) Labels(pairs ...string) *PoolBuilder {
	for pair := range slices.Chunk(pairs, 2) {
		m.pool.Spec.Labels = With(m.pool.Spec.Labels, pair[0], tidekeeperv1.LabelValue(pair[1]))
		m.Managing(setting.LabelKey(pair[0]))
	}
	return m
}

// Annotations adds annotations to the pool's spec, given as alternating keys and values.
func (m *PoolBuilder) Annotations(pairs ...string) *PoolBuilder {
	for pair := range slices.Chunk(pairs, 2) {
		m.pool.Spec.Annotations = With(m.pool.Spec.Annotations, pair[0], tidekeeperv1.AnnotationValue(pair[1]))
		m.Managing(setting.AnnotationKey(pair[0]))
	}
	return m
}

// Taint appends a taint to the pool's spec.
func (m *PoolBuilder) Taint(key, value string, effect corev1.TaintEffect) *PoolBuilder {
	m.pool.Spec.Taints = append(m.pool.Spec.Taints, tidekeeperv1.Taint{Key: key, Value: tidekeeperv1.LabelValue(value), Effect: effect})
	return m.Managing(setting.TaintKey(key, effect))
}

// TaintWithinBudgets appends a NoExecute taint with the eviction WithinBudgets to the pool's spec.
func (m *PoolBuilder) TaintWithinBudgets(key, value string) *PoolBuilder {
	m.Taint(key, value, corev1.TaintEffectNoExecute)
	m.pool.Spec.Taints[len(m.pool.Spec.Taints)-1].Eviction = tidekeeperv1.TaintEvictionWithinBudgets
	return m.Managing(setting.TaintKey(key, corev1.TaintEffectNoSchedule))
}

// Managing adds keys to the managed keys in the pool's status, which include all keys of the spec
// by default.
func (m *PoolBuilder) Managing(keys ...setting.Key) *PoolBuilder {
	all := sets.New(slices.Collect(setting.KeysOf(&m.pool.Status.Managed))...)
	m.pool.Status.Managed = setting.ManagedKeys(all.Insert(keys...))
	return m
}

// ManagingNothing removes all managed keys from the pool's status.
func (m *PoolBuilder) ManagingNothing() *PoolBuilder {
	m.pool.Status.Managed = tidekeeperv1.ManagedKeys{}
	return m
}

// WithoutFinalizer removes the finalizer of the pool, as on a newly created pool.
func (m *PoolBuilder) WithoutFinalizer() *PoolBuilder {
	m.pool.Finalizers = nil
	return m
}

// Handler sets the handler of the pool's RuntimeClass.
func (m *PoolBuilder) Handler(handler string) *PoolBuilder {
	m.pool.Spec.Handler = handler
	return m
}

// Deleted sets the deletion timestamp of the pool, as on a pool that waits for the removal of its
// finalizer.
func (m *PoolBuilder) Deleted() *PoolBuilder {
	m.pool.DeletionTimestamp = &metav1.Time{Time: Epoch.Add(time.Hour)}
	return m
}

// Obj returns a copy of the pool.
func (m *PoolBuilder) Obj() *tidekeeperv1.NodePool { return m.pool.DeepCopy() }

// Member returns the pool as a PoolOnNode for a member node.
func (m *PoolBuilder) Member() plan.PoolOnNode { return plan.PoolOnNode{Pool: m.Obj(), Member: true} }

// Evictor returns the pool as a PoolOnNode for a member node to which the pool may add NoExecute
// taints.
func (m *PoolBuilder) Evictor() plan.PoolOnNode {
	return plan.PoolOnNode{Pool: m.Obj(), Member: true, MayEvict: true, TurnAt: PatchTime}
}

// Emptied returns the pool as a PoolOnNode for a member node on which the pool's NoExecute taints
// with the eviction WithinBudgets would delete no pod.
func (m *PoolBuilder) Emptied() plan.PoolOnNode {
	return plan.PoolOnNode{Pool: m.Obj(), Member: true, Emptied: true}
}

// NoMember returns the pool as a PoolOnNode for a node that is not a member, because the pool does
// not select the node or the pool is being deleted.
func (m *PoolBuilder) NoMember() plan.PoolOnNode { return plan.PoolOnNode{Pool: m.Obj()} }

// PodBuilder builds a pod.
type PodBuilder struct{ pod corev1.Pod }

// Pod returns a builder for a pod with a single container without resource requests.
func Pod(name string) *PodBuilder {
	return &PodBuilder{corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("pod-" + name), ResourceVersion: "1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c0"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}}
}

// On binds the pod to the named node.
func (m *PodBuilder) On(node string) *PodBuilder {
	m.pod.Spec.NodeName = node
	return m
}

// Phase sets the pod's phase.
func (m *PodBuilder) Phase(phase corev1.PodPhase) *PodBuilder {
	m.pod.Status.Phase = phase
	return m
}

// Requests sets the CPU and memory requests of the first container. An empty string omits the
// resource.
func (m *PodBuilder) Requests(cpu, memory string) *PodBuilder {
	m.pod.Spec.Containers[0].Resources.Requests = CPUAndMemory(cpu, memory)
	return m
}

// Container adds a container with the given CPU and memory requests to the pod.
func (m *PodBuilder) Container(cpu, memory string) *PodBuilder {
	m.pod.Spec.Containers = append(m.pod.Spec.Containers, corev1.Container{
		Name: "c" + string(rune('0'+len(m.pod.Spec.Containers))), Resources: corev1.ResourceRequirements{Requests: CPUAndMemory(cpu, memory)},
	})
	return m
}

// Init adds an init container with the given CPU and memory requests.
func (m *PodBuilder) Init(cpu, memory string) *PodBuilder {
	m.pod.Spec.InitContainers = append(m.pod.Spec.InitContainers, corev1.Container{
		Name: "i" + string(rune('0'+len(m.pod.Spec.InitContainers))), Resources: corev1.ResourceRequirements{Requests: CPUAndMemory(cpu, memory)},
	})
	return m
}

// Sidecar adds an init container with the restart policy Always and the given CPU and memory
// requests.
func (m *PodBuilder) Sidecar(cpu, memory string) *PodBuilder {
	m.Init(cpu, memory)
	always := corev1.ContainerRestartPolicyAlways
	m.pod.Spec.InitContainers[len(m.pod.Spec.InitContainers)-1].RestartPolicy = &always
	return m
}

// Overhead sets the CPU and memory overhead of the pod.
func (m *PodBuilder) Overhead(cpu, memory string) *PodBuilder {
	m.pod.Spec.Overhead = CPUAndMemory(cpu, memory)
	return m
}

// PodLevel sets the pod-level CPU and memory requests.
func (m *PodBuilder) PodLevel(cpu, memory string) *PodBuilder {
	m.pod.Spec.Resources = &corev1.ResourceRequirements{Requests: CPUAndMemory(cpu, memory)}
	return m
}

// Tolerating adds tolerations to the pod.
func (m *PodBuilder) Tolerating(tolerations ...corev1.Toleration) *PodBuilder {
	m.pod.Spec.Tolerations = append(m.pod.Spec.Tolerations, tolerations...)
	return m
}

// Obj returns a copy of the pod.
func (m *PodBuilder) Obj() *corev1.Pod { return m.pod.DeepCopy() }

// CPUAndMemory returns a resource list with the given quantities. An empty string omits the
// resource.
func CPUAndMemory(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

// With returns a copy of the map with the given entry added. The map may be nil.
func With[M ~map[K]V, K comparable, V any](m M, key K, value V) M {
	m = maps.Clone(m)
	if m == nil {
		m = M{}
	}
	m[key] = value
	return m
}
