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

	"tidekeeper.dev/tidekeeper/internal/podstartup"
)

// Kind says what of a pod has changed.
type Kind string

// What can happen to a pod.
const (
	// Found: it was there before anybody looked. To is its phase.
	Found Kind = "Found"
	// Created: it has come to be.
	Created Kind = "Created"
	// Phase: From and To are phases.
	Phase Kind = "Phase"
	// Condition: Name is its type, From and To are its status; the same if only
	// the reason changed, "" if there is no such condition.
	Condition Kind = "Condition"
	// Container: Name is that of the container, From and To are of Waiting,
	// Running and Terminated; "" if the pod does not say.
	Container Kind = "Container"
	// Deleting: somebody has deleted it, and it ends within its grace period.
	Deleting Kind = "Deleting"
	// Deleted: it is no more.
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
	// Time is when it happened, in whole seconds, on the clocks of the cluster.
	// It is zero if the pod does not tell.
	Time time.Time `json:"time,omitzero"`
	// The pod. Node is the one that it is bound to.
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
	// Restarts is how often the container was started again.
	Restarts int32 `json:"restarts,omitempty"`
	// Again: it is what it was, and was something else in between that was not
	// seen.
	Again bool `json:"again,omitempty"`
}

// Diff returns what has happened to a pod from one state to a later one, in the
// order in which it did as far as their timestamps tell, and else in the order
// in which pods live. old is nil for a pod that was not there; a pod of another
// UID has taken the place of the old one. It has no side effects.
func Diff(old, pod *corev1.Pod) []Transition {
	if old != nil && old.UID != pod.UID {
		return append([]Transition{gone(old, "another pod has its name")}, Diff(nil, pod)...)
	}
	d := difference{old: old, pod: pod}
	if old == nil {
		d.old = &corev1.Pod{}
		d.add(Transition{Kind: Created, Time: pod.CreationTimestamp.Time})
	}
	starting := pod.Status.Phase != corev1.PodRunning && !ended(pod)
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
	d.phase(ended(pod))
	return d.inOrder()
}

// found returns the one line about a pod that was there before anybody looked.
func found(pod *corev1.Pod) Transition {
	t := Transition{Kind: Found, To: string(pod.Status.Phase)}
	if c := podstartup.Condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		t.Message = "ready"
	} else if c != nil && !ended(pod) {
		t.Reason, t.Message = c.Reason, c.Message
	}
	if pod.DeletionTimestamp != nil {
		t.Message = "is being deleted"
	}
	return of(pod, t)
}

// gone returns that a pod is no more.
func gone(pod *corev1.Pod, message string) Transition {
	return of(pod, Transition{Kind: Deleted, Message: message})
}

// of puts the pod into a transition.
func of(pod *corev1.Pod, t Transition) Transition {
	t.Namespace, t.Pod, t.UID, t.Node = pod.Namespace, pod.Name, string(pod.UID), pod.Spec.NodeName
	return t
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// difference collects what has happened between two states of a pod.
type difference struct {
	old, pod    *corev1.Pod
	transitions []Transition
}

func (d *difference) add(t Transition) {
	t.Time = t.Time.Truncate(podstartup.Grain)
	d.transitions = append(d.transitions, of(d.pod, t))
}

// phase adds the phase, if it has changed and this is its place.
func (d *difference) phase(here bool) {
	was, is := d.old.Status, d.pod.Status
	if here && (was.Phase != is.Phase || was.Reason != is.Reason) {
		d.add(Transition{Kind: Phase, From: string(was.Phase), To: string(is.Phase), Reason: is.Reason, Message: is.Message})
	}
}

func (d *difference) condition(kind corev1.PodConditionType) {
	was, is := podstartup.Condition(d.old, kind), podstartup.Condition(d.pod, kind)
	switch {
	case was == nil && is == nil:
		return
	case was == nil:
		was = &corev1.PodCondition{}
	case is == nil:
		is = &corev1.PodCondition{}
	}
	t := Transition{Kind: Condition, Name: string(kind), From: string(was.Status), To: string(is.Status), Reason: is.Reason, Message: is.Message}
	// A reason can change without a transition, and then has no time.
	moved := is.LastTransitionTime.After(was.LastTransitionTime.Time)
	if moved || was.Status != is.Status {
		t.Time = is.LastTransitionTime.Time
	}
	t.Again = moved && was.Status == is.Status
	if t.Again || was.Status != is.Status || was.Reason != is.Reason {
		d.add(t)
	}
}

// otherConditions returns, in order, the conditions that have no place of their
// own: readiness gates, disruptions, and what else somebody has set.
func (d *difference) otherConditions() []corev1.PodConditionType {
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

func (d *difference) deletion() {
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

// inOrder returns the transitions in the order of their times. One without a
// time stays behind the one that it followed, and what happened to one container
// stays in order, even if it tells that it ended before it started.
func (d *difference) inOrder() []Transition {
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

// trim returns a pod with what a difference is made from, and nothing else.
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
