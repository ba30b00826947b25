// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// Kind is the kind of a transition, such as a change of the pod's phase.
type Kind string

// Kinds of transitions.
const (
	// Found means that the pod already existed when the watch began. To is the pod's phase.
	Found Kind = "Found"
	// Created means that the pod was created.
	Created Kind = "Created"
	// Phase means that the pod's phase changed. From and To are phases.
	Phase Kind = "Phase"
	// Condition means that a condition of the pod changed. Name is the condition's type; From and
	// To are its statuses, which are equal if only the reason changed. A status is "" if the pod
	// does not have the condition.
	Condition Kind = "Condition"
	// Container means that a container's state changed. Name is the container's name; From and To
	// are Waiting, Running or Terminated, or "" for an unknown state.
	Container Kind = "Container"
	// Event means that an event about the pod was recorded, with the given Reason and Message. Name
	// is the container that the event is about, if any.
	Event Kind = "Event"
	// Deleting means that the deletion of the pod was requested. The pod terminates within its
	// grace period.
	Deleting Kind = "Deleting"
	// Deleted means that the pod no longer exists.
	Deleted Kind = "Deleted"
)

// States of a container, the values of From and To in a transition of the kind Container.
const (
	Waiting    = "waiting"
	Running    = "running"
	Terminated = "terminated"
)

// Transition describes a change of a pod, or an event about a pod.
type Transition struct {
	// Seen is the time at which the transition was observed, according to this machine's clock.
	Seen time.Time `json:"seen"`
	// Time is the time at which the transition happened, in whole seconds, according to the
	// cluster's clocks. It is zero if the pod's status does not contain the time.
	Time time.Time `json:"time,omitzero"`
	// Namespace, Pod and UID identify the pod. Node is the name of the pod's node.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Node      string `json:"node,omitempty"`
	// Kind determines the meaning of Name, From and To.
	Kind    Kind   `json:"kind"`
	Name    string `json:"name,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Type is an event's type, Normal or Warning. Count is the number of the event's occurrences; 0
	// if it occurred once.
	Type  string `json:"type,omitempty"`
	Count int32  `json:"count,omitempty"`
	// Restarts is the number of restarts of the container whose state changed.
	Restarts int32 `json:"restarts,omitempty"`
	// Repeated is true if From and To are equal because the API server did not send the state
	// between them.
	Repeated bool `json:"repeated,omitempty"`
}

// Diff returns the transitions from the state old of a pod to the state pod, ordered by their
// timestamps. Transitions without a timestamp are placed in the order in which they usually happen.
// old is nil if the pod did not exist before. If the UIDs differ, pod is another pod, which has
// replaced old.
func Diff(old, pod *corev1.Pod) []Transition {
	if old != nil && old.UID != pod.UID {
		return append([]Transition{deleted(old, "replaced by another pod of the same name")}, Diff(nil, pod)...)
	}
	d := differ{old: old, pod: pod}
	if old == nil {
		d.old = &corev1.Pod{}
		d.add(Transition{Kind: Created, Time: pod.CreationTimestamp.Time})
	}
	starting := pod.Status.Phase != corev1.PodRunning && !pods.IsTerminal(pod)
	d.phase(starting)
	d.condition(corev1.PodScheduled)
	d.condition(corev1.PodReadyToStartContainers)
	d.containers(d.old.Status.InitContainerStatuses, pod.Status.InitContainerStatuses)
	d.condition(corev1.PodInitialized)
	d.phase(pod.Status.Phase == corev1.PodRunning)
	d.deletion()
	d.containers(d.old.Status.ContainerStatuses, pod.Status.ContainerStatuses)
	d.containers(d.old.Status.EphemeralContainerStatuses, pod.Status.EphemeralContainerStatuses)
	d.condition(corev1.ContainersReady)
	for _, kind := range d.otherConditions() {
		d.condition(kind)
	}
	d.condition(corev1.PodReady)
	d.phase(pods.IsTerminal(pod))
	return d.inOrder()
}

// found returns the transition for a pod that already existed when the watch began.
func found(pod *corev1.Pod) Transition {
	t := Transition{Kind: Found, To: string(pod.Status.Phase)}
	if c := pods.Condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		t.Message = "ready"
	} else if c != nil && !pods.IsTerminal(pod) {
		t.Reason, t.Message = c.Reason, c.Message
	}
	if pod.DeletionTimestamp != nil {
		t.Message = "is being deleted"
	}
	return withPod(t, pod)
}

// deleted returns the transition for a pod that no longer exists. From is the pod's last phase.
func deleted(pod *corev1.Pod, message string) Transition {
	return withPod(Transition{Kind: Deleted, From: string(pod.Status.Phase), Message: message}, pod)
}

// withPod returns the transition with the fields that identify the pod.
func withPod(t Transition, pod *corev1.Pod) Transition {
	t.Namespace, t.Pod, t.UID, t.Node = pod.Namespace, pod.Name, string(pod.UID), pod.Spec.NodeName
	return t
}

// differ collects the transitions between two states of a pod.
type differ struct {
	old, pod    *corev1.Pod
	transitions []Transition
}

func (d *differ) add(t Transition) {
	t.Time = t.Time.Truncate(podtimeline.Resolution)
	d.transitions = append(d.transitions, withPod(t, d.pod))
}

// phase adds a transition if the phase has changed and `here` is true. Diff calls phase several
// times, and sets `here` only in the call at the position where the transition usually happens.
func (d *differ) phase(here bool) {
	was, is := d.old.Status, d.pod.Status
	if here && (was.Phase != is.Phase || was.Reason != is.Reason) {
		d.add(Transition{Kind: Phase, From: string(was.Phase), To: string(is.Phase), Reason: is.Reason, Message: is.Message})
	}
}

func (d *differ) condition(kind corev1.PodConditionType) {
	was, is := pods.Condition(d.old, kind), pods.Condition(d.pod, kind)
	switch {
	case was == nil && is == nil:
		return
	case was == nil:
		was = &corev1.PodCondition{}
	case is == nil:
		is = &corev1.PodCondition{}
	}
	t := Transition{Kind: Condition, Name: string(kind), From: string(was.Status), To: string(is.Status), Reason: is.Reason, Message: is.Message}
	// LastTransitionTime does not change if only the reason of a condition changes.
	moved := is.LastTransitionTime.After(was.LastTransitionTime.Time)
	if moved || was.Status != is.Status {
		t.Time = is.LastTransitionTime.Time
	}
	t.Repeated = moved && was.Status == is.Status
	if t.Repeated || was.Status != is.Status || was.Reason != is.Reason {
		d.add(t)
	}
}

// otherConditions returns the types of all conditions for which Diff has no fixed position, such as
// readiness gates and disruptions, sorted by name.
func (d *differ) otherConditions() []corev1.PodConditionType {
	kinds := map[corev1.PodConditionType]bool{}
	for _, pod := range []*corev1.Pod{d.old, d.pod} {
		for _, c := range pod.Status.Conditions {
			kinds[c.Type] = true
		}
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		delete(kinds, kind)
	}
	return slices.Sorted(maps.Keys(kinds))
}

func (d *differ) deletion() {
	if d.old.DeletionTimestamp != nil || d.pod.DeletionTimestamp == nil {
		return
	}
	t := Transition{Kind: Deleting}
	if grace := d.pod.DeletionGracePeriodSeconds; grace != nil {
		// The deletion timestamp is the end of the grace period. Subtract the grace period to get
		// the time of the request.
		length := time.Duration(*grace) * time.Second
		t.Time = d.pod.DeletionTimestamp.Add(-length)
		t.Message = fmt.Sprintf("grace period %s", length)
	}
	d.add(t)
}

// inOrder sorts the transitions by time. A transition without a time stays behind the transition
// that precedes it. The transitions of a container keep their order even if its status contains a
// termination before the start.
func (d *differ) inOrder() []Transition {
	type placed struct {
		at time.Time
		Transition
	}
	var list []placed
	var at time.Time
	for i, t := range d.transitions {
		if !t.Time.IsZero() {
			at = t.Time
		}
		if i > 0 && t.Kind == Container && t.Name == list[i-1].Name && at.Before(list[i-1].at) {
			at = list[i-1].at
		}
		list = append(list, placed{at, t})
	}
	slices.SortStableFunc(list, func(a, b placed) int { return a.at.Compare(b.at) })
	for i := range list {
		d.transitions[i] = list[i].Transition
	}
	return d.transitions
}

// trim returns a copy of the pod with only the fields that Diff reads.
func trim(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message, Conditions: pod.Status.Conditions,
			InitContainerStatuses: trimContainers(pod.Status.InitContainerStatuses), ContainerStatuses: trimContainers(pod.Status.ContainerStatuses),
			EphemeralContainerStatuses: trimContainers(pod.Status.EphemeralContainerStatuses),
		},
	}
}
