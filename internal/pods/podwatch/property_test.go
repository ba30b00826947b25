// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// view is a pod's state as far as it can be derived from the reported transitions, keyed by the
// name of a condition, a container or another part of the status.
type view map[string]string

// viewOf returns the view that contains a pod's complete state. It is empty for nil.
func viewOf(pod *corev1.Pod) view {
	v := view{}
	if pod == nil {
		return v
	}
	v["pod"] = string(pod.UID)
	if pod.Status.Phase != "" || pod.Status.Reason != "" {
		v["phase"] = string(pod.Status.Phase) + " " + pod.Status.Reason
	}
	if pod.DeletionTimestamp != nil {
		v["deleting"] = "yes"
	}
	for _, given := range pod.Status.Conditions {
		c := pods.Condition(pod, given.Type)
		v["condition "+string(c.Type)] = string(c.Status) + " " + c.Reason
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for _, given := range list {
			s := pods.ContainerStatus(list, given.Name)
			state := stateOf(s)
			if state == Waiting {
				state += " " + s.State.Waiting.Reason
			}
			if state != "" {
				v["container "+s.Name] = state
			}
		}
	}
	return v
}

// read applies transitions to a view and returns the resulting view.
func read(v view, transitions []Transition) view {
	for _, t := range transitions {
		switch t.Kind {
		case Created:
			v = view{"pod": t.UID}
		case Deleted:
			v = view{}
		case Phase:
			v["phase"] = t.To + " " + t.Reason
			if t.To == "" && t.Reason == "" {
				delete(v, "phase")
			}
		case Deleting:
			v["deleting"] = "yes"
		case Condition:
			v["condition "+t.Name] = t.To + " " + t.Reason
			if t.To == "" && t.Reason == "" {
				delete(v, "condition "+t.Name)
			}
		case Container:
			v["container "+t.Name] = t.To
			switch t.To {
			case Waiting:
				v["container "+t.Name] += " " + t.Reason
			case "":
				delete(v, "container "+t.Name)
			}
		}
	}
	return v
}

// check returns an error unless the transitions between the two states have the properties that all
// transitions have.
func check(old, pod *corev1.Pod) error {
	var errs []error
	transitions := Diff(old, pod)
	if again := Diff(pod, pod); len(again) != 0 {
		errs = append(errs, fmt.Errorf("a pod differs from itself: %q", describeAll(again)))
	}
	if diff := cmp.Diff(viewOf(pod), read(viewOf(old), transitions)); diff != "" {
		errs = append(errs, fmt.Errorf("the lines %q do not lead there (-want +got):\n%s", describeAll(transitions), diff))
	}
	if diff := cmp.Diff(transitions, Diff(old, trim(pod))); diff != "" {
		errs = append(errs, fmt.Errorf("what is trimmed away matters (-whole +trimmed):\n%s", diff))
	}
	for _, t := range transitions {
		if t.Time.Nanosecond() != 0 {
			errs = append(errs, fmt.Errorf("%s: finer than a second", describe(t)))
		}
		if t.From == t.To && t.Kind == Condition && !t.Repeated && t.Time != (time.Time{}) {
			errs = append(errs, fmt.Errorf("%s: nothing happened", describe(t)))
		}
	}
	return errors.Join(errs...)
}

// after modifies pod so that its state can follow the state of old: for example, a deletion cannot
// be undone.
func after(old, pod *corev1.Pod) *corev1.Pod {
	if old != nil && old.UID == pod.UID && old.DeletionTimestamp != nil {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = old.DeletionTimestamp, old.DeletionGracePeriodSeconds
	}
	return pod
}

func drawState(t *rapid.T) corev1.ContainerState {
	second := rapid.IntRange(0, 20)
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 0:
		return running(second.Draw(t, "started"))
	case 1:
		return waiting(rapid.SampledFrom([]string{"", "ErrImagePull", "CrashLoopBackOff"}).Draw(t, "waits for"))
	case 2:
		return terminated(second.Draw(t, "started"), second.Draw(t, "finished"), rapid.Int32Range(0, 1).Draw(t, "code"))
	default:
		return corev1.ContainerState{}
	}
}

func drawContainers(t *rapid.T, prefix string) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for range rapid.IntRange(0, 3).Draw(t, "containers") {
		list = append(list, corev1.ContainerStatus{
			Name: prefix + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), State: drawState(t), LastTerminationState: drawState(t),
			RestartCount: rapid.Int32Range(0, 2).Draw(t, "restarts"),
		})
	}
	return list
}

func drawPod(t *rapid.T) *corev1.Pod {
	p := pod()
	p.UID = rapid.SampledFrom([]types.UID{"1", "1", "1", "2"}).Draw(t, "uid")
	p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}).Draw(t, "phase")
	p.Status.Reason = rapid.SampledFrom([]string{"", "Evicted"}).Draw(t, "why")
	if rapid.IntRange(0, 4).Draw(t, "deleted") == 0 {
		deleting(rapid.IntRange(0, 20).Draw(t, "deletion"))(p)
	}
	for range rapid.IntRange(0, 6).Draw(t, "conditions") {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: rapid.SampledFrom([]corev1.PodConditionType{
				corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, "gate",
			}).Draw(t, "type"),
			Status:             rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}).Draw(t, "status"),
			LastTransitionTime: at(rapid.IntRange(0, 20).Draw(t, "since")),
			Reason:             rapid.SampledFrom([]string{"", "R"}).Draw(t, "reason"),
		})
	}
	p.Status.InitContainerStatuses, p.Status.ContainerStatuses = drawContainers(t, "i"), drawContainers(t, "c")
	return p
}

// TestLinesLeadFromStateToState checks, for random states of a pod, that the transitions lead from
// each state to the next without loss or repetition, and that the final view does not depend on the
// intermediate states.
func TestLinesLeadFromStateToState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		states := []*corev1.Pod{nil}
		for range rapid.IntRange(1, 4).Draw(t, "states") {
			states = append(states, after(states[len(states)-1], drawPod(t)))
		}
		known := view{}
		for i, state := range states[1:] {
			if err := check(states[i], state); err != nil {
				t.Fatal(err)
			}
			known = read(known, Diff(states[i], state))
		}
		last := states[len(states)-1]
		if diff := cmp.Diff(read(view{}, Diff(nil, last)), known); diff != "" {
			t.Fatalf("states in between matter in the end (-without +with):\n%s", diff)
		}
		// The transitions must not depend on the order of the conditions.
		other := last.DeepCopy()
		slices.Reverse(other.Status.Conditions)
		if again := Diff(last, other); len(again) > 0 {
			t.Fatalf("the order of the conditions matters: %q", describeAll(again))
		}
	})
}

func FuzzDiff(f *testing.F) {
	add := func(old, pod *corev1.Pod) {
		a, err := json.Marshal(old)
		if err != nil {
			f.Fatal(err)
		}
		b, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a, b)
	}
	add(nil, pod())
	add(&corev1.Pod{}, pod(yes(corev1.PodScheduled, 1), deleting(3)))
	add(pod(no(corev1.PodReady, 1, "ContainersNotReady"), app(0, waiting("ContainerCreating"))), pod(yes(corev1.PodReady, 9), app(1, running(5), terminated(3, 4, 1))))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var old *corev1.Pod
		pod := &corev1.Pod{}
		if json.Unmarshal(a, &old) != nil || json.Unmarshal(b, pod) != nil {
			t.Skip()
		}
		// The API server rejects pods in which containers in different lists have the same name.
		for _, p := range []*corev1.Pod{old, pod} {
			if p == nil {
				continue
			}
			for i, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
				for j := range list {
					list[j].Name = fmt.Sprint(i, list[j].Name)
				}
			}
		}
		if err := check(old, after(old, pod)); err != nil {
			t.Error(err)
		}
	})
}
