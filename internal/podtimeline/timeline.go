// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/pods"
)

// Resolution is how exact the times of a pod are: the API truncates them to whole
// seconds. Every duration can be off by up to one Resolution in either direction, and
// a duration of zero means less than one Resolution.
const Resolution = time.Second

// maxStartup bounds how long a start-up can plausibly take. A later time is taken
// for a mistake.
const maxStartup = 100 * 365 * 24 * time.Hour

// StageName names a stage by what ends it.
type StageName string

// The stages, in the order in which a pod goes through them. The first begins when
// the pod is created, each other one when the one before it ends.
const (
	// Scheduled: the pod is bound to a node.
	Scheduled StageName = "scheduled"
	// Initialized: its init containers have completed, and its sidecars have started.
	Initialized StageName = "initialized"
	// ContainersStarted: each container has been started once.
	ContainersStarted StageName = "containers_started"
	// ContainersReady: all containers are ready.
	ContainersReady StageName = "containers_ready"
	// Ready: the readiness gates are true as well, and with them the pod is ready.
	Ready StageName = "ready"
)

// StageNames returns the names of all stages, in order.
func StageNames() []StageName {
	return []StageName{Scheduled, Initialized, ContainersStarted, ContainersReady, Ready}
}

// Timeline is how a pod started, as far as it has come.
type Timeline struct {
	// Created is when the pod was created.
	Created time.Time
	// Stages are the stages that the pod has completed, in order and without gaps,
	// followed by the one that it is in, unless it is Ready or Ended.
	Stages []Stage
	// Restarts is how often containers were restarted during the start-up. It leaves
	// out the restarts of a container that last started after the pod became ready,
	// because the pod does not say how many of them came before.
	Restarts int64
	// Ended: the pod has ended or is being deleted, and goes through no more stages.
	// Such a pod does not say whether it was ever ready.
	Ended bool
}

// Stage is one stage of a pod's start-up.
type Stage struct {
	Name StageName
	// Start is when the stage began, which is when the one before it ended.
	Start time.Time
	// Duration is how long the stage took. It is zero for a stage that is not Done,
	// except in what [Timeline.At] returns.
	Duration time.Duration
	// Share is the Duration as a share of the total, from 0 to 1. It is 0 if the
	// total is.
	Share float64
	// Done: the pod has completed the stage. Only the last stage may not be Done.
	Done bool
	// Estimated: the pod does not say when the stage ended, or gives an impossible
	// time, before its creation or after the end of a later stage. The end is then
	// the nearest possible time.
	Estimated bool
	// Waits is what the pod waits for in this stage; in a completed stage, what the
	// pod still says about it. What the scheduler or an image had waited for is gone
	// from the pod once that is over: only events keep it, for an hour.
	Waits []Wait
}

// End returns when the stage ended or, if it is not Done, until when it is known to
// have lasted.
func (s Stage) End() time.Time { return s.Start.Add(s.Duration) }

// Ready reports whether the pod is ready.
func (t Timeline) Ready() bool {
	return len(t.Stages) == len(stages) && t.Stages[len(stages)-1].Done
}

// Total returns the time from the creation to the end of the last stage.
func (t Timeline) Total() time.Duration {
	var total time.Duration
	for _, s := range t.Stages {
		total += s.Duration
	}
	return total
}

// Slowest returns the stage that took longest, the first if there are several. It
// returns false if there is no stage.
func (t Timeline) Slowest() (Stage, bool) {
	if len(t.Stages) == 0 {
		return Stage{}, false
	}
	slowest := t.Stages[0]
	for _, s := range t.Stages {
		if s.Duration > slowest.Duration {
			slowest = s
		}
	}
	return slowest, true
}

// At returns the timeline with the current stage lasting until now, and the shares to
// match. Without a current stage it returns the timeline as it is.
func (t Timeline) At(now time.Time) Timeline {
	t.Stages = append([]Stage(nil), t.Stages...)
	if n := len(t.Stages); n > 0 && !t.Stages[n-1].Done {
		last := &t.Stages[n-1]
		if now = now.Truncate(Resolution); plausible(t.Created, now) && now.After(last.Start) {
			last.Duration = now.Sub(last.Start)
		}
	}
	t.setShares()
	return t
}

func (t *Timeline) setShares() {
	total := t.Total()
	for i := range t.Stages {
		s := &t.Stages[i]
		s.Share = 0
		if total > 0 {
			s.Share = float64(s.Duration) / float64(total)
		}
	}
}

// stages says for each stage when it ended in a pod, and what the pod waits for in it.
var stages = []struct {
	name  StageName
	end   func(*corev1.Pod) stageEnd
	waits func(*corev1.Pod, Stage) []Wait
}{
	{Scheduled, endOfScheduling, waitsForScheduler},
	{Initialized, whenTrue(corev1.PodInitialized), waitsForInit},
	{ContainersStarted, endOfContainerStarts, waitsForStart},
	{ContainersReady, whenTrue(corev1.ContainersReady), waitsForContainers},
	{Ready, whenTrue(corev1.PodReady), waitsForGates},
}

// New returns the timeline of a pod.
//
// For each condition a pod keeps the last transition only. The timeline of a pod that
// became ready a second time, or whose kubelet rewrote its conditions, therefore ends
// at the last of these times. Where conditions contradict each other, the later stage
// is believed: a pod that is ready was initialized, and not after it became ready.
func New(pod *corev1.Pod) Timeline {
	t := stagesOf(pod)
	for i := range t.Stages {
		t.Stages[i].Waits = stages[i].waits(pod, t.Stages[i])
	}
	t.Restarts = restarts(pod, t)
	t.setShares()
	return t
}

// stagesOf returns the timeline with the durations of its stages only. That is all
// that a cache needs, which computes it at each change of each pod.
func stagesOf(pod *corev1.Pod) Timeline {
	ends := make([]stageEnd, len(stages))
	completed := 0
	for i, s := range stages {
		ends[i] = s.end(pod)
		if ends[i].reached {
			completed = i + 1
		}
	}
	t := Timeline{Created: creation(pod, ends[:completed]), Ended: !pods.IsActive(pod), Stages: make([]Stage, 0, len(stages))}

	// Backwards: no stage ended after a later one.
	var next time.Time
	for i := completed - 1; i >= 0; i-- {
		e := &ends[i]
		e.at = e.at.Truncate(Resolution)
		switch {
		case !plausible(t.Created, e.at):
			e.at = time.Time{}
		case !next.IsZero() && e.at.After(next):
			e.at, e.inexact = next, true
		}
		if !e.at.IsZero() {
			next = e.at
		}
	}

	start := t.Created
	for i := range completed {
		e := ends[i]
		s := Stage{Name: stages[i].name, Start: start, Done: true, Estimated: e.inexact || e.at.IsZero()}
		if !e.at.IsZero() {
			s.Duration = e.at.Sub(start)
		}
		start = s.End()
		t.Stages = append(t.Stages, s)
	}
	if completed < len(stages) && !t.Ended {
		t.Stages = append(t.Stages, Stage{Name: stages[completed].name, Start: start})
	}
	return t
}

// plausible reports whether a stage of a pod that was created then can have ended at
// the given time.
func plausible(created, at time.Time) bool {
	return !at.Before(created) && at.Sub(created) < maxStartup
}

// creation returns when the pod was created or, if the pod does not say, the earliest
// time that it gives.
func creation(pod *corev1.Pod, ends []stageEnd) time.Time {
	first := pod.CreationTimestamp.Time
	if first.IsZero() {
		for _, e := range ends {
			if !e.at.IsZero() && (first.IsZero() || e.at.Before(first)) {
				first = e.at
			}
		}
	}
	return first.Truncate(Resolution)
}

// restarts returns how often containers were restarted during the start-up.
func restarts(pod *corev1.Pod, t Timeline) int64 {
	var sum int64
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if restartedDuringStartup(&statuses[i], t) {
				sum += int64(statuses[i].RestartCount)
			}
		}
	}
	return sum
}

// restartedDuringStartup reports whether a container has restarted, and last started
// before the pod became ready.
func restartedDuringStartup(s *corev1.ContainerStatus, t Timeline) bool {
	if s.RestartCount <= 0 {
		return false
	}
	if !t.Ready() || s.State.Running == nil {
		return true
	}
	return !s.State.Running.StartedAt.Truncate(Resolution).After(t.Stages[len(t.Stages)-1].End())
}
