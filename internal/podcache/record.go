// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"fmt"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// record is a pod. The fields are those in which the pods of a workload differ.
type record struct {
	namespace, node unique.Handle[string]
	name            string
	uid             types.UID
	resourceVersion string
	created         seconds
	deleted         *metav1.Time
	// owners is the list of one owner, and lastCondition the last condition
	// without its time; nil if there is none.
	owners        *[1]metav1.OwnerReference
	lastCondition *corev1.PodCondition
	since         seconds
	// rest is the pod without all that; what is empty there may be nil, or the
	// other way round.
	rest *corev1.Pod
}

// seconds is a time as the API has it, which takes a third of a [metav1.Time].
type seconds int64

func secondsOf(t metav1.Time) seconds { return seconds(t.Unix()) }

func (s seconds) time() metav1.Time {
	t := metav1.Unix(int64(s), 0)
	if t.IsZero() {
		return metav1.Time{} // in no time zone
	}
	return t
}

// What pods have in common.
var (
	rests      common[string, corev1.Pod]
	owners     common[owner, [1]metav1.OwnerReference]
	conditions common[corev1.PodCondition, corev1.PodCondition]
)

// owner is an owner reference by value.
type owner struct {
	metav1.OwnerReference
	controller, blocks optional
}

// optional is what a pointer to a bool says.
type optional struct{ set, value bool }

func optionalOf(b *bool) optional {
	if b == nil {
		return optional{}
	}
	return optional{true, *b}
}

// recordOf returns the record of a pod, which it leaves as it is.
func recordOf(pod *corev1.Pod) (*record, error) {
	r := &record{
		namespace: unique.Make(pod.Namespace), node: unique.Make(pod.Spec.NodeName),
		name: pod.Name, uid: pod.UID, resourceVersion: pod.ResourceVersion,
		created: secondsOf(pod.CreationTimestamp), deleted: pod.DeletionTimestamp,
	}
	rest := *pod
	rest.Namespace, rest.Spec.NodeName, rest.Name, rest.UID, rest.ResourceVersion = "", "", "", "", ""
	rest.CreationTimestamp, rest.DeletionTimestamp = metav1.Time{}, nil
	if len(pod.OwnerReferences) == 1 {
		r.owners = ownersOf(pod.OwnerReferences[0])
		rest.OwnerReferences = nil
	}
	if n := len(pod.Status.Conditions); n > 0 {
		last := pod.Status.Conditions[n-1]
		r.since, last.LastTransitionTime = secondsOf(last.LastTransitionTime), metav1.Time{}
		r.lastCondition = conditions.get(last, func() *corev1.PodCondition { return &last })
		rest.Status.Conditions = slices.Clip(pod.Status.Conditions[:n-1])
	}
	key, err := rest.Marshal()
	if err != nil {
		return nil, fmt.Errorf("keep pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.rest = rests.get(string(key), rest.DeepCopy)
	return r, nil
}

func ownersOf(reference metav1.OwnerReference) *[1]metav1.OwnerReference {
	key := owner{reference, optionalOf(reference.Controller), optionalOf(reference.BlockOwnerDeletion)}
	key.Controller, key.BlockOwnerDeletion = nil, nil
	return owners.get(key, func() *[1]metav1.OwnerReference {
		return &[1]metav1.OwnerReference{*reference.DeepCopy()}
	})
}

// pod returns the pod. It must not be changed.
func (r *record) pod() *corev1.Pod {
	pod := *r.rest
	pod.Namespace, pod.Spec.NodeName, pod.Name, pod.UID, pod.ResourceVersion = r.namespace.Value(), r.node.Value(), r.name, r.uid, r.resourceVersion
	pod.CreationTimestamp, pod.DeletionTimestamp = r.created.time(), r.deleted
	if r.owners != nil {
		pod.OwnerReferences = r.owners[:]
	}
	if r.lastCondition != nil {
		last := *r.lastCondition
		last.LastTransitionTime = r.since.time()
		pod.Status.Conditions = append(slices.Clip(pod.Status.Conditions), last)
	}
	return &pod
}

// GetObjectKind implements [runtime.Object], for lists of records.
func (r *record) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object]. A record never changes.
func (r *record) DeepCopyObject() runtime.Object { return r }

// GetObjectMeta implements [metav1.ObjectMetaAccessor]: client-go asks for name
// and version.
func (r *record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.namespace.Value(), Name: r.name, UID: r.uid, ResourceVersion: r.resourceVersion}
}
