// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Grain is how exact the times of a pod are: the API keeps whole seconds, cut
// off. Every length can be wrong by up to one Grain either way, and a length of
// zero means less than one Grain.
const Grain = time.Second

// horizon is how long after its creation a pod can be told to have got
// anywhere. What is told to be later is not a time but a mistake.
const horizon = 100 * 365 * 24 * time.Hour

// StageName names a stage by what ends it.
type StageName string

// The stages, in the order in which a pod goes through them. The first begins
// with the pod's creation, each other one where the one before it ends.
const (
	// Scheduled: the pod is bound to a node.
	Scheduled StageName = "scheduled"
	// Initialized: its init containers are done, and its sidecars started.
	Initialized StageName = "initialized"
	// ContainersStarted: each container has been started once.
	ContainersStarted StageName = "containers_started"
	// ContainersReady: all containers are ready.
	ContainersReady StageName = "containers_ready"
	// Ready: so are the readiness gates, and with them the pod.
	Ready StageName = "ready"
)

// StageNames returns the names of all stages, in order.
func StageNames() []StageName {
	return []StageName{Scheduled, Initialized, ContainersStarted, ContainersReady, Ready}
}

// Timeline tells how a pod came up, or how far it has come.
type Timeline struct {
	// Created is when the pod was created.
	Created time.Time
	// Stages are those that the pod has been through, in order and without a
	// gap, and after them the one that it is in, unless it is Ready or Ended.
	Stages []Stage
	// Restarts is how often containers were started again on the way. The
	// restarts of a container that started after the pod became ready are left
	// out, as nothing tells how many of them came before.
	Restarts int64
	// Ended: the pod has ended or is being deleted, and goes through no more
	// stages. Then nothing tells whether it has ever been ready.
	Ended bool
}

// Stage is one stage of a pod's start-up.
type Stage struct {
	Name StageName
	// Start is when it began, which is when the one before it ended.
	Start time.Time
	// Length is how long it took. A stage that is not Done has none but in what
	// [Timeline.At] returns.
	Length time.Duration
	// Share is the Length as a share of the whole, from 0 to 1. It is 0 if the
	// whole is.
	Share float64
	// Done: the pod is through with it. Only the last stage may not be.
	Done bool
	// Estimated: the pod does not tell when it ended, or tells something that
	// cannot be: a time before its creation or after a later stage's. The end
	// is then the nearest that can be.
	Estimated bool
	// Waits is what the pod waits for in this stage; of a stage that is done,
	// what can still be told of it. A pod does not tell what the scheduler or
	// the image had waited for once it is over: its events do, for an hour.
	Waits []Wait
}

// End is when the stage ended, or, if it is not Done, until when it is known to
// have lasted.
func (s Stage) End() time.Time { return s.Start.Add(s.Length) }

// Ready tells whether the pod is ready.
func (t Timeline) Ready() bool {
	return len(t.Stages) == len(stages) && t.Stages[len(stages)-1].Done
}

// Whole returns the time from the creation to the end of the last stage.
func (t Timeline) Whole() time.Duration {
	var whole time.Duration
	for _, s := range t.Stages {
		whole += s.Length
	}
	return whole
}

// Slowest returns the stage that took longest, the first of several; false if
// there is none.
func (t Timeline) Slowest() (Stage, bool) {
	if len(t.Stages) == 0 {
		return Stage{}, false
	}
	slowest := t.Stages[0]
	for _, s := range t.Stages {
		if s.Length > slowest.Length {
			slowest = s
		}
	}
	return slowest, true
}

// At returns the timeline with the stage that the pod is in lasting until now,
// and the shares accordingly. A pod that is in none has the same timeline at
// all times.
func (t Timeline) At(now time.Time) Timeline {
	t.Stages = append([]Stage(nil), t.Stages...)
	if n := len(t.Stages); n > 0 && !t.Stages[n-1].Done {
		last := &t.Stages[n-1]
		if now = now.Truncate(Grain); possible(t.Created, now) && now.After(last.Start) {
			last.Length = now.Sub(last.Start)
		}
	}
	t.share()
	return t
}

func (t *Timeline) share() {
	whole := t.Whole()
	for i := range t.Stages {
		s := &t.Stages[i]
		s.Share = 0
		if whole > 0 {
			s.Share = float64(s.Length) / float64(whole)
		}
	}
}

// milestone is the end of a stage as the pod itself tells it.
type milestone struct {
	reached bool
	// at is zero if the pod does not say.
	at time.Time
	// inexact: it was then or earlier.
	inexact bool
}

// stages says of each stage where a pod tells its end, and what it waits for.
var stages = []struct {
	name  StageName
	end   func(*corev1.Pod) milestone
	waits func(*corev1.Pod, Stage) []Wait
}{
	{Scheduled, scheduled, waitsForScheduler},
	{Initialized, ofCondition(corev1.PodInitialized), waitsForInit},
	{ContainersStarted, containersStarted, waitsForStart},
	{ContainersReady, ofCondition(corev1.ContainersReady), waitsForContainers},
	{Ready, ofCondition(corev1.PodReady), waitsForGates},
}

// TimelineOf tells how a pod came up, from nothing but the pod.
//
// A pod keeps of each condition only the last transition. So a pod that ceased
// to be ready and became ready again shows how long it took to the last time,
// and so does one whose conditions its kubelet has written anew. Where the
// conditions contradict each other, what is further on the way is believed: a
// pod that is ready has been initialized, and not later than that.
//
// It has no side effects.
func TimelineOf(pod *corev1.Pod) Timeline {
	t := stagesOf(pod)
	for i := range t.Stages {
		t.Stages[i].Waits = stages[i].waits(pod, t.Stages[i])
	}
	t.Restarts = restarts(pod, t)
	t.share()
	return t
}

// stagesOf is the timeline with nothing but how long each stage took: all that
// a cache wants to know, which asks at each change of each pod.
func stagesOf(pod *corev1.Pod) Timeline {
	ends := make([]milestone, len(stages))
	through := 0 // how many stages the pod is through with
	for i, s := range stages {
		ends[i] = s.end(pod)
		if ends[i].reached {
			through = i + 1
		}
	}
	t := Timeline{Created: creation(pod, ends[:through]), Ended: ended(pod), Stages: make([]Stage, 0, len(stages))}

	// From the end: nothing came after what came later.
	var next time.Time
	for i := through - 1; i >= 0; i-- {
		e := &ends[i]
		e.at = e.at.Truncate(Grain)
		switch {
		case !possible(t.Created, e.at):
			e.at = time.Time{}
		case !next.IsZero() && e.at.After(next):
			e.at, e.inexact = next, true
		}
		if !e.at.IsZero() {
			next = e.at
		}
	}

	start := t.Created
	for i := range through {
		e := ends[i]
		s := Stage{Name: stages[i].name, Start: start, Done: true, Estimated: e.inexact || e.at.IsZero()}
		if !e.at.IsZero() {
			s.Length = e.at.Sub(start)
		}
		start = s.End()
		t.Stages = append(t.Stages, s)
	}
	if through < len(stages) && !t.Ended {
		t.Stages = append(t.Stages, Stage{Name: stages[through].name, Start: start})
	}
	return t
}

// possible tells whether a pod of that creation can have got somewhere then.
func possible(created, at time.Time) bool {
	return !at.Before(created) && at.Sub(created) < horizon
}

// creation returns when the pod was created, or if it does not say, the first
// time that it tells.
func creation(pod *corev1.Pod, ends []milestone) time.Time {
	first := pod.CreationTimestamp.Time
	if first.IsZero() {
		for _, e := range ends {
			if !e.at.IsZero() && (first.IsZero() || e.at.Before(first)) {
				first = e.at
			}
		}
	}
	return first.Truncate(Grain)
}

func ended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Condition returns the condition of that type, or nil. Of several the last to
// have changed counts, whatever their order.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	var found *corev1.PodCondition
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if found == nil || cmp.Or(
			c.LastTransitionTime.Compare(found.LastTransitionTime.Time),
			cmp.Compare(c.Status, found.Status),
			cmp.Compare(c.Reason, found.Reason),
			cmp.Compare(c.Message, found.Message),
		) > 0 {
			found = c
		}
	}
	return found
}

func isTrue(c *corev1.PodCondition) bool { return c != nil && c.Status == corev1.ConditionTrue }

// ofCondition finds the end of a stage in a condition.
func ofCondition(kind corev1.PodConditionType) func(*corev1.Pod) milestone {
	return func(pod *corev1.Pod) milestone {
		c := Condition(pod, kind)
		if !isTrue(c) {
			return milestone{}
		}
		return milestone{reached: true, at: c.LastTransitionTime.Time}
	}
}

// scheduled finds when the pod was bound. A pod that was made for its node, as
// that of a static manifest, may have no condition that says so, but the time
// when its kubelet took it up.
func scheduled(pod *corev1.Pod) milestone {
	if m := ofCondition(corev1.PodScheduled)(pod); m.reached && !m.at.IsZero() {
		return m
	}
	m := milestone{reached: pod.Spec.NodeName != "" || isTrue(Condition(pod, corev1.PodScheduled)), inexact: true}
	if pod.Status.StartTime != nil {
		m.reached, m.at = true, pod.Status.StartTime.Time
	}
	return m
}

// containersStarted finds when the last of the containers was started for the
// first time. Of a container that was started more than twice that is forgotten,
// and what is left of it is the last start but one.
func containersStarted(pod *corev1.Pod) milestone {
	m := milestone{reached: len(pod.Spec.Containers) > 0}
	for _, c := range pod.Spec.Containers {
		s := statusOf(pod.Status.ContainerStatuses, c.Name)
		if s == nil {
			return milestone{}
		}
		first, ok := firstStart(s)
		if !ok {
			return milestone{}
		}
		switch {
		case first.IsZero():
			m.inexact = true
		case first.After(m.at):
			m.at = first
		}
		m.inexact = m.inexact || s.RestartCount > 1
	}
	return m
}

// firstStart returns the first start of a container that is still known, and
// false if it was never started. The time is zero if the container does not say.
func firstStart(s *corev1.ContainerStatus) (time.Time, bool) {
	var first time.Time
	started := false
	consider := func(at metav1.Time) {
		started = true
		if !at.IsZero() && (first.IsZero() || at.Time.Before(first)) {
			first = at.Time
		}
	}
	for _, state := range []corev1.ContainerState{s.LastTerminationState, s.State} {
		if state.Running != nil {
			consider(state.Running.StartedAt)
		}
		// A container that could never be started is terminated without a start.
		if state.Terminated != nil && !state.Terminated.StartedAt.IsZero() {
			consider(state.Terminated.StartedAt)
		}
	}
	return first, started
}

// restarts returns how often containers were started again on the way.
func restarts(pod *corev1.Pod, t Timeline) int64 {
	var all int64
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if onTheWay(&statuses[i], t) {
				all += int64(statuses[i].RestartCount)
			}
		}
	}
	return all
}

// onTheWay tells whether a container has restarted, and not since the pod is
// ready.
func onTheWay(s *corev1.ContainerStatus, t Timeline) bool {
	if s.RestartCount <= 0 {
		return false
	}
	if !t.Ready() || s.State.Running == nil {
		return true
	}
	return !s.State.Running.StartedAt.Truncate(Grain).After(t.Stages[len(t.Stages)-1].End())
}
