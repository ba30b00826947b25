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

	"tidekeeper.dev/tidekeeper/internal/pods"
	"tidekeeper.dev/tidekeeper/internal/podtimeline"
)

// Kind is what changed in a pod.
type Kind string

// The kinds of transitions.
const (
	// Found: the pod existed before the watch began. To is its phase.
	Found Kind = "Found"
	// Created: the pod was created.
	Created Kind = "Created"
	// Phase: From and To are phases.
	Phase Kind = "Phase"
	// Condition: Name is its type, From and To are its status; both are the same if only
	// the reason changed, and "" if the pod does not have the condition.
	Condition Kind = "Condition"
	// Container: Name is the name of the container, From and To are Waiting, Running or
	// Terminated, and "" if the pod does not say.
	Container Kind = "Container"
	// Event: an event about the pod, Reason and Message; Name is the container that it is
	// about, if any.
	Event Kind = "Event"
	// Deleting: the pod was deleted, and ends within its grace period.
	Deleting Kind = "Deleting"
	// Deleted: the pod no longer exists.
	Deleted Kind = "Deleted"
)

// The states of a container.
const (
	Waiting    = "waiting"
	Running    = "running"
	Terminated = "terminated"
)

// Transition is one thing that happened to a pod.
type Transition struct {
	// Seen is when it was read, on the clock of this machine.
	Seen time.Time `json:"seen"`
	// Time is when it happened, in whole seconds, on the clocks of the cluster. It is
	// zero if the pod does not say.
	Time time.Time `json:"time,omitzero"`
	// The pod. Node is the node that it is bound to.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Node      string `json:"node,omitempty"`
	// What happened; Kind says what the other fields are.
	Kind    Kind   `json:"kind"`
	Name    string `json:"name,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Type is that of an event, Normal or Warning, and Count how often it has happened if
	// that is more than once.
	Type  string `json:"type,omitempty"`
	Count int32  `json:"count,omitempty"`
	// Restarts is how often the container was restarted.
	Restarts int32 `json:"restarts,omitempty"`
	// Repeated: the state is the same as before, and was another in between that the
	// API server did not send.
	Repeated bool `json:"repeated,omitempty"`
}

// Diff returns what happened to a pod between two states, in the order of the
// timestamps and, where there are none, in the order in which these things usually
// happen. old is nil if the pod did not exist; a pod with another UID has replaced the
// old one.
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

// found returns the transition for a pod that existed before the watch began.
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

// deleted returns the transition for a pod that no longer exists, from its last phase.
func deleted(pod *corev1.Pod, message string) Transition {
	return withPod(Transition{Kind: Deleted, From: string(pod.Status.Phase), Message: message}, pod)
}

// withPod returns the transition with the fields that identify the pod.
func withPod(t Transition, pod *corev1.Pod) Transition {
	t.Namespace, t.Pod, t.UID, t.Node = pod.Namespace, pod.Name, string(pod.UID), pod.Spec.NodeName
	return t
}

// differ collects what happened between two states of a pod.
type differ struct {
	old, pod    *corev1.Pod
	transitions []Transition
}

func (d *differ) add(t Transition) {
	t.Time = t.Time.Truncate(podtimeline.Resolution)
	d.transitions = append(d.transitions, withPod(t, d.pod))
}

// phase adds the phase if it has changed and belongs here in the order.
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
	// If only the reason changes, the condition does not say when.
	moved := is.LastTransitionTime.After(was.LastTransitionTime.Time)
	if moved || was.Status != is.Status {
		t.Time = is.LastTransitionTime.Time
	}
	t.Repeated = moved && was.Status == is.Status
	if t.Repeated || was.Status != is.Status || was.Reason != is.Reason {
		d.add(t)
	}
}

// otherConditions returns, in order, the conditions that have no fixed place:
// readiness gates, disruptions, and any others.
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
		// The timestamp is when the grace period ends.
		length := time.Duration(*grace) * time.Second
		t.Time = d.pod.DeletionTimestamp.Add(-length)
		t.Message = fmt.Sprintf("grace period %s", length)
	}
	d.add(t)
}

// inOrder returns the transitions in the order of their times. A transition without a
// time stays behind its predecessor, and those of one container stay in order even if
// the container claims to have ended before it started.
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

// trim returns a copy of the pod with the fields that Diff reads.
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
