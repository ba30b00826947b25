// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/drain"
)

// record is the stored form of a pod: the fields in which the pods of a workload differ, and
// pointers to the parts that these pods share. A record is immutable, so that client-go can use the
// record itself instead of a copy.
type record struct {
	namespace, node unique.Handle[string]
	name            string
	uid             types.UID
	resourceVersion string
	created         seconds
	deleted         *metav1.Time
	// lastCondition is the pod's last condition without its time and message; nil if the pod has no
	// conditions. The message is stored separately because it describes the pod's startup and is
	// rarely the same for two pods.
	lastCondition *corev1.PodCondition
	since         seconds
	message       string
	// facts determine whether the pod blocks a drain. They are zero if the cache keeps no facts.
	facts drain.Facts
	*common
}

// common is the part of a pod that it shares with other pods of the same owner.
type common struct {
	parts
	// facts holds the two most recent facts about pods with these parts, so that later pods with
	// equal facts can share their memory. It is protected by the encoder's lock.
	facts [2]drain.Facts
}

// parts are the parts of a pod that it shares with other pods. Pods with equal parts share a single
// value of the type common.
type parts struct {
	// owners holds the owner reference if the pod has exactly one. It is nil otherwise.
	owners *[1]metav1.OwnerReference
	// shared is the pod without the fields stored in record and without the owner reference in
	// owners. An empty list or map of the pod may be nil in shared, and a nil list or map may be
	// empty, because their protobuf encodings are equal.
	shared *corev1.Pod
}

// seconds is a Unix time in seconds, which is the resolution of times in the API. It takes a third
// of the memory of a [metav1.Time].
type seconds int64

func secondsOf(t metav1.Time) seconds { return seconds(t.Unix()) }

func (s seconds) time() metav1.Time {
	t := metav1.Unix(int64(s), 0)
	if t.IsZero() {
		return metav1.Time{} // A zero time has no time zone.
	}
	return t
}

// encoder converts Pods to records, and interns the shared parts of the records.
type encoder struct {
	shared  internTable[digest, corev1.Pod]
	owners  internTable[ownerKey, [1]metav1.OwnerReference]
	commons internTable[parts, common]
	// byBytes interns the shared parts of records built from protobuf, keyed by a hash of the
	// encoded fields that belong to the shared part.
	byBytes    internTable[digest, common]
	conditions internTable[corev1.PodCondition, corev1.PodCondition]
	// mu protects the field facts of all values of the type common.
	mu sync.Mutex
}

// digest is the SHA-256 hash of a byte string.
type digest [sha256.Size]byte

// ownerKey is an owner reference in a comparable form.
type ownerKey struct {
	metav1.OwnerReference
	controller, blocks optional
}

// optional is the value of a *bool in a comparable form.
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
	var c parts
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
	r.common = e.commons.intern(c, func() *common { return &common{parts: c} })
	return r, nil
}

// setLast sets a record's last condition, including the condition's time and message.
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

// pod restores the Pod from its record. Callers must not modify the Pod.
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

// GetObjectKind implements [runtime.Object], so that a list can contain records.
func (r *record) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object]. It returns the record itself, because records are
// immutable.
func (r *record) DeepCopyObject() runtime.Object { return r }

// GetObjectMeta implements [metav1.ObjectMetaAccessor]. The result contains only the metadata that
// client-go reads: the name, namespace, UID, resourceVersion and annotations.
func (r *record) GetObjectMeta() metav1.Object {
	about := &metav1.ObjectMeta{Name: r.name, UID: r.uid, ResourceVersion: r.resourceVersion}
	if r.namespace != (unique.Handle[string]{}) { // The record of a bookmark has no namespace.
		about.Namespace = r.namespace.Value()
	}
	if r.common != nil {
		about.Annotations = r.shared.Annotations
	}
	return about
}
