// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// record is a pod in the store: the fields in which the pods of a workload differ, and pointers
// to the parts that they share. A record never changes, so the record itself serves wherever
// client-go makes a copy.
type record struct {
	namespace, node unique.Handle[string]
	name            string
	uid             types.UID
	resourceVersion string
	created         seconds
	deleted         *metav1.Time
	// lastCondition is the last condition without its time and message; nil if the pod has no
	// condition. The message describes the startup of the pod, and is rarely the same for two
	// pods.
	lastCondition *corev1.PodCondition
	since         seconds
	message       string
	*common
}

// common is the part that the pods of an owner share.
type common struct {
	// owners is the list of owners if there is exactly one owner, else nil.
	owners *[1]metav1.OwnerReference
	// shared is the pod without the fields of its record and without these owners. An empty
	// field may be nil in shared, and the other way round.
	shared *corev1.Pod
}

// seconds is a time with the resolution of the API. It takes a third of the memory of a
// [metav1.Time].
type seconds int64

func secondsOf(t metav1.Time) seconds { return seconds(t.Unix()) }

func (s seconds) time() metav1.Time {
	t := metav1.Unix(int64(s), 0)
	if t.IsZero() {
		return metav1.Time{} // The zero time has no time zone.
	}
	return t
}

// encoder turns Pods into records, and interns their shared parts.
type encoder struct {
	shared  internTable[digest, corev1.Pod]
	owners  internTable[ownerKey, [1]metav1.OwnerReference]
	commons internTable[common, common]
	// byBytes interns the shared part of records built from protobuf, keyed by a hash of their
	// masked bytes.
	byBytes    internTable[digest, common]
	conditions internTable[corev1.PodCondition, corev1.PodCondition]
}

// digest is a hash that represents bytes which may be long.
type digest [sha256.Size]byte

// ownerKey is a comparable owner reference.
type ownerKey struct {
	metav1.OwnerReference
	controller, blocks optional
}

// optional is the value of a pointer to a bool.
type optional struct{ set, value bool }

func optionalOf(b *bool) optional {
	if b == nil {
		return optional{}
	}
	return optional{true, *b}
}

// record returns the record of a pod. It does not modify the pod.
func (e *encoder) record(pod *corev1.Pod) (*record, error) {
	r := &record{
		namespace: unique.Make(pod.Namespace), node: unique.Make(pod.Spec.NodeName),
		name: pod.Name, uid: pod.UID, resourceVersion: pod.ResourceVersion,
		created: secondsOf(pod.CreationTimestamp), deleted: pod.DeletionTimestamp,
	}
	shared := *pod
	shared.Namespace, shared.Spec.NodeName, shared.Name, shared.UID, shared.ResourceVersion = "", "", "", "", ""
	shared.CreationTimestamp, shared.DeletionTimestamp = metav1.Time{}, nil
	var c common
	if len(pod.OwnerReferences) == 1 {
		c.owners = e.ownersOf(pod.OwnerReferences[0])
		shared.OwnerReferences = nil
	}
	if n := len(pod.Status.Conditions); n > 0 {
		e.setLast(r, pod.Status.Conditions[n-1])
		shared.Status.Conditions = slices.Clip(pod.Status.Conditions[:n-1])
	}
	key, err := shared.Marshal()
	if err != nil {
		return nil, fmt.Errorf("store pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	c.shared = e.shared.intern(sha256.Sum256(key), shared.DeepCopy)
	r.common = e.commons.intern(c, func() *common { return &c })
	return r, nil
}

// setLast sets the last condition of a record.
func (e *encoder) setLast(r *record, last corev1.PodCondition) {
	r.since, last.LastTransitionTime = secondsOf(last.LastTransitionTime), metav1.Time{}
	r.message, last.Message = last.Message, ""
	r.lastCondition = e.conditions.intern(last, func() *corev1.PodCondition { return new(last) })
}

func (e *encoder) ownersOf(reference metav1.OwnerReference) *[1]metav1.OwnerReference {
	key := ownerKey{reference, optionalOf(reference.Controller), optionalOf(reference.BlockOwnerDeletion)}
	key.Controller, key.BlockOwnerDeletion = nil, nil
	return e.owners.intern(key, func() *[1]metav1.OwnerReference {
		return &[1]metav1.OwnerReference{*reference.DeepCopy()}
	})
}

// pod restores the Pod. It must not be modified.
func (r *record) pod() *corev1.Pod {
	pod := *r.shared
	pod.Namespace, pod.Spec.NodeName, pod.Name, pod.UID, pod.ResourceVersion = r.namespace.Value(), r.node.Value(), r.name, r.uid, r.resourceVersion
	pod.CreationTimestamp, pod.DeletionTimestamp = r.created.time(), r.deleted
	if r.owners != nil {
		pod.OwnerReferences = r.owners[:]
	}
	if r.lastCondition != nil {
		last := *r.lastCondition
		last.LastTransitionTime, last.Message = r.since.time(), r.message
		pod.Status.Conditions = append(slices.Clip(pod.Status.Conditions), last)
	}
	return &pod
}

// GetObjectKind implements [runtime.Object], for lists of records.
func (r *record) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object]. A record never changes, so it can be its own
// copy.
func (r *record) DeepCopyObject() runtime.Object { return r }

// GetObjectMeta implements [metav1.ObjectMetaAccessor]: client-go reads the name and the
// resourceVersion.
func (r *record) GetObjectMeta() metav1.Object {
	about := &metav1.ObjectMeta{Name: r.name, UID: r.uid, ResourceVersion: r.resourceVersion}
	if r.namespace != (unique.Handle[string]{}) { // A bookmark has no namespace.
		about.Namespace = r.namespace.Value()
	}
	if r.common != nil {
		about.Annotations = r.shared.Annotations
	}
	return about
}
