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

// Objects for tests, built so that a table row reads as a sentence:
//
//	Node("a").Label("zone", "1").Taint("gpu", "yes", corev1.TaintEffectNoSchedule)
//	Pool("worker").Labels("zone", "1").CreatedAt(2)
//	Pod("web").On("a").Requests("100m", "64Mi")
//
// Pools are active: they have their finalizer, and manage all keys of their spec, unless the
// row says otherwise.

// NodeBuilder builds a node.
type NodeBuilder struct{ node corev1.Node }

// Node begins a node that has only a name.
func Node(name string) *NodeBuilder {
	return &NodeBuilder{corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("node-" + name), ResourceVersion: "1",
	}}}
}

// Label adds a label.
func (m *NodeBuilder) Label(key, value string) *NodeBuilder {
	m.node.Labels = With(m.node.Labels, key, value)
	return m
}

// Role adds the role label of the pool.
func (m *NodeBuilder) Role(pool string) *NodeBuilder {
	return m.Label(tidekeeperv1.RoleLabelPrefix+pool, "")
}

// Annotation adds an annotation.
func (m *NodeBuilder) Annotation(key, value string) *NodeBuilder {
	m.node.Annotations = With(m.node.Annotations, key, value)
	return m
}

// Taint adds a taint at the end of the list.
func (m *NodeBuilder) Taint(key, value string, effect corev1.TaintEffect) *NodeBuilder {
	m.node.Spec.Taints = append(m.node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	return m
}

// TaintAt adds a taint with the time at which it was added.
func (m *NodeBuilder) TaintAt(key, value string, effect corev1.TaintEffect, added time.Time) *NodeBuilder {
	m.Taint(key, value, effect)
	m.node.Spec.Taints[len(m.node.Spec.Taints)-1].TimeAdded = &metav1.Time{Time: added}
	return m
}

// Owned records on the node that the pool has put a value there.
func (m *NodeBuilder) Owned(pool string, s setting.Key, value string) *NodeBuilder {
	r, err := ownership.Parse(m.node.Annotations[tidekeeperv1.OwnershipAnnotation])
	if err != nil {
		panic(err)
	}
	r.Put(pool, s, ownership.DigestOf(s, value))
	return m.Annotation(tidekeeperv1.OwnershipAnnotation, r.String())
}

// LabelOf adds a label that is recorded as the pool's.
func (m *NodeBuilder) LabelOf(pool, key, value string) *NodeBuilder {
	return m.Label(key, value).Owned(pool, setting.LabelKey(key), value)
}

// AnnotationOf adds an annotation that is recorded as the pool's.
func (m *NodeBuilder) AnnotationOf(pool, key, value string) *NodeBuilder {
	return m.Annotation(key, value).Owned(pool, setting.AnnotationKey(key), value)
}

// TaintOf adds a taint that is recorded as the pool's.
func (m *NodeBuilder) TaintOf(pool, key, value string, effect corev1.TaintEffect) *NodeBuilder {
	return m.Taint(key, value, effect).Owned(pool, setting.TaintKey(key, effect), value)
}

// OwnershipText sets the text of the ownership annotation.
func (m *NodeBuilder) OwnershipText(text string) *NodeBuilder {
	return m.Annotation(tidekeeperv1.OwnershipAnnotation, text)
}

// ResourceVersion sets the resourceVersion.
func (m *NodeBuilder) ResourceVersion(version string) *NodeBuilder {
	m.node.ResourceVersion = version
	return m
}

// Ready sets the condition Ready.
func (m *NodeBuilder) Ready(status corev1.ConditionStatus) *NodeBuilder {
	m.node.Status.Conditions = append(m.node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: status})
	return m
}

// Capacity adds a resource to the capacity, and the same to allocatable.
func (m *NodeBuilder) Capacity(name corev1.ResourceName, quantity string) *NodeBuilder {
	m.node.Status.Capacity = With(m.node.Status.Capacity, name, resource.MustParse(quantity))
	return m.Allocatable(name, quantity)
}

// Allocatable adds a resource to allocatable.
func (m *NodeBuilder) Allocatable(name corev1.ResourceName, quantity string) *NodeBuilder {
	m.node.Status.Allocatable = With(m.node.Status.Allocatable, name, resource.MustParse(quantity))
	return m
}

// Obj returns a copy of the node.
func (m *NodeBuilder) Obj() *corev1.Node { return m.node.DeepCopy() }

// PoolBuilder builds a NodePool.
type PoolBuilder struct{ pool tidekeeperv1.NodePool }

// Epoch is the creation time of pools with CreatedAt(0).
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Pool begins a pool that selects nodes by its role label and asks for no settings.
func Pool(name string) *PoolBuilder {
	return &PoolBuilder{tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("pool-" + name), ResourceVersion: "1", Generation: 1,
		CreationTimestamp: metav1.NewTime(Epoch),
		Finalizers:        []string{tidekeeperv1.NodePoolFinalizer},
	}}}
}

// PoolFrom begins with a copy of a pool.
func PoolFrom(pool *tidekeeperv1.NodePool) *PoolBuilder { return &PoolBuilder{*pool.DeepCopy()} }

// Spec replaces the spec.
func (m *PoolBuilder) Spec(spec tidekeeperv1.NodePoolSpec) *PoolBuilder {
	m.pool.Spec = spec
	return m
}

// CreatedAt sets the creation time, in seconds after [Epoch].
func (m *PoolBuilder) CreatedAt(n int) *PoolBuilder {
	m.pool.CreationTimestamp = metav1.NewTime(Epoch.Add(time.Duration(n) * time.Second))
	return m
}

// MatchLabels selects nodes by labels, given as key, value, key, value….
func (m *PoolBuilder) MatchLabels(pairs ...string) *PoolBuilder {
	s := m.selector()
	for pair := range slices.Chunk(pairs, 2) {
		s.MatchLabels = With(s.MatchLabels, pair[0], tidekeeperv1.LabelValue(pair[1]))
	}
	return m
}

// MatchExpression selects nodes by a requirement on a label.
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

// Labels asks for labels, given as key, value, key, value….
func (m *PoolBuilder) Labels(pairs ...string) *PoolBuilder {
	for pair := range slices.Chunk(pairs, 2) {
		m.pool.Spec.Labels = With(m.pool.Spec.Labels, pair[0], tidekeeperv1.LabelValue(pair[1]))
		m.Managing(setting.LabelKey(pair[0]))
	}
	return m
}

// Annotations asks for annotations, given as key, value, key, value….
func (m *PoolBuilder) Annotations(pairs ...string) *PoolBuilder {
	for pair := range slices.Chunk(pairs, 2) {
		m.pool.Spec.Annotations = With(m.pool.Spec.Annotations, pair[0], tidekeeperv1.AnnotationValue(pair[1]))
		m.Managing(setting.AnnotationKey(pair[0]))
	}
	return m
}

// Taint asks for a taint.
func (m *PoolBuilder) Taint(key, value string, effect corev1.TaintEffect) *PoolBuilder {
	m.pool.Spec.Taints = append(m.pool.Spec.Taints, tidekeeperv1.Taint{Key: key, Value: tidekeeperv1.LabelValue(value), Effect: effect})
	return m.Managing(setting.TaintKey(key, effect))
}

// Managing adds managed keys to the keys of the spec.
func (m *PoolBuilder) Managing(keys ...setting.Key) *PoolBuilder {
	all := sets.New(slices.Collect(setting.KeysOf(&m.pool.Status.Managed))...)
	m.pool.Status.Managed = setting.ManagedKeys(all.Insert(keys...))
	return m
}

// ManagingNothing removes all managed keys.
func (m *PoolBuilder) ManagingNothing() *PoolBuilder {
	m.pool.Status.Managed = tidekeeperv1.ManagedKeys{}
	return m
}

// WithoutFinalizer removes the finalizer, as on a pool that was just created.
func (m *PoolBuilder) WithoutFinalizer() *PoolBuilder {
	m.pool.Finalizers = nil
	return m
}

// Handler asks for a RuntimeClass.
func (m *PoolBuilder) Handler(handler string) *PoolBuilder {
	m.pool.Spec.Handler = handler
	return m
}

// Deleted sets the deletion timestamp: the pool waits for its finalizer.
func (m *PoolBuilder) Deleted() *PoolBuilder {
	m.pool.DeletionTimestamp = &metav1.Time{Time: Epoch.Add(time.Hour)}
	return m
}

// Obj returns a copy of the pool.
func (m *PoolBuilder) Obj() *tidekeeperv1.NodePool { return m.pool.DeepCopy() }

// Member returns the pool as it applies to a node that it selects.
func (m *PoolBuilder) Member() plan.PoolOnNode { return plan.PoolOnNode{Pool: m.Obj(), Member: true} }

// Evictor returns the pool as it applies to a member node on which it may add NoExecute taints
// now.
func (m *PoolBuilder) Evictor() plan.PoolOnNode {
	return plan.PoolOnNode{Pool: m.Obj(), Member: true, MayEvict: true}
}

// NoMember returns the pool as it applies to a node that it no longer selects, or that it
// selects while being deleted.
func (m *PoolBuilder) NoMember() plan.PoolOnNode { return plan.PoolOnNode{Pool: m.Obj()} }

// PodBuilder builds a pod.
type PodBuilder struct{ pod corev1.Pod }

// Pod begins a pod of one container that requests nothing.
func Pod(name string) *PodBuilder {
	return &PodBuilder{corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("pod-" + name), ResourceVersion: "1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c0"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}}
}

// On binds the pod to a node.
func (m *PodBuilder) On(node string) *PodBuilder {
	m.pod.Spec.NodeName = node
	return m
}

// Phase sets the pod's phase.
func (m *PodBuilder) Phase(phase corev1.PodPhase) *PodBuilder {
	m.pod.Status.Phase = phase
	return m
}

// Requests sets the requests of the first container.
func (m *PodBuilder) Requests(cpu, memory string) *PodBuilder {
	m.pod.Spec.Containers[0].Resources.Requests = CPUAndMemory(cpu, memory)
	return m
}

// Container adds a container.
func (m *PodBuilder) Container(cpu, memory string) *PodBuilder {
	m.pod.Spec.Containers = append(m.pod.Spec.Containers, corev1.Container{
		Name: "c" + string(rune('0'+len(m.pod.Spec.Containers))), Resources: corev1.ResourceRequirements{Requests: CPUAndMemory(cpu, memory)},
	})
	return m
}

// Init adds an init container.
func (m *PodBuilder) Init(cpu, memory string) *PodBuilder {
	m.pod.Spec.InitContainers = append(m.pod.Spec.InitContainers, corev1.Container{
		Name: "i" + string(rune('0'+len(m.pod.Spec.InitContainers))), Resources: corev1.ResourceRequirements{Requests: CPUAndMemory(cpu, memory)},
	})
	return m
}

// Sidecar adds an init container that keeps running.
func (m *PodBuilder) Sidecar(cpu, memory string) *PodBuilder {
	m.Init(cpu, memory)
	always := corev1.ContainerRestartPolicyAlways
	m.pod.Spec.InitContainers[len(m.pod.Spec.InitContainers)-1].RestartPolicy = &always
	return m
}

// Overhead sets the pod's overhead.
func (m *PodBuilder) Overhead(cpu, memory string) *PodBuilder {
	m.pod.Spec.Overhead = CPUAndMemory(cpu, memory)
	return m
}

// PodLevel sets the pod-level requests.
func (m *PodBuilder) PodLevel(cpu, memory string) *PodBuilder {
	m.pod.Spec.Resources = &corev1.ResourceRequirements{Requests: CPUAndMemory(cpu, memory)}
	return m
}

// Tolerating adds tolerations.
func (m *PodBuilder) Tolerating(tolerations ...corev1.Toleration) *PodBuilder {
	m.pod.Spec.Tolerations = append(m.pod.Spec.Tolerations, tolerations...)
	return m
}

// Obj returns a copy of the pod.
func (m *PodBuilder) Obj() *corev1.Pod { return m.pod.DeepCopy() }

// CPUAndMemory returns a resource list; an empty text omits a resource.
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

// With returns a copy of the map with an added entry; a new map if it was nil.
func With[M ~map[K]V, K comparable, V any](m M, key K, value V) M {
	m = maps.Clone(m)
	if m == nil {
		m = M{}
	}
	m[key] = value
	return m
}
