// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Resolution is the resolution of a pod's times, which the API truncates to whole seconds. Each
// duration can be wrong by up to one Resolution in either direction, and a duration of zero means
// less than one Resolution.
const Resolution = time.Second

// maxStartup is the maximum plausible duration of a startup. A time in the pod's status that would
// result in a longer startup is ignored.
const maxStartup = 100 * 365 * 24 * time.Hour

// StageName is the name of a startup stage. It names the event that ends the stage.
type StageName string

// Stages of a pod's startup, in order. The first stage starts with the pod's creation, and each
// later stage with the end of the previous stage.
const (
	// Scheduled ends when the pod is bound to a node.
	Scheduled StageName = "scheduled"
	// Initialized ends when the init containers have completed and the sidecars have started.
	Initialized StageName = "initialized"
	// ContainersStarted ends when each container has been started once.
	ContainersStarted StageName = "containers_started"
	// ContainersReady ends when all containers are ready.
	ContainersReady StageName = "containers_ready"
	// Ready ends when all readiness gates are true as well, so that the pod is Ready.
	Ready StageName = "ready"
)

// StageNames returns the names of all stages, in order.
func StageNames() []StageName {
	return []StageName{Scheduled, Initialized, ContainersStarted, ContainersReady, Ready}
}

// Timeline describes a pod's startup up to its current stage.
type Timeline struct {
	// Created is the pod's creation time.
	Created time.Time
	// Stages lists the completed stages, in order and without gaps. The current stage is last,
	// unless the pod is Ready or Ended.
	Stages []Stage
	// Restarts is the number of container restarts during the startup. If a container last started
	// after the pod became Ready, none of its restarts are counted, because the status does not
	// show which of them happened earlier.
	Restarts int64
	// Ended is true if the pod has terminated or is being deleted, so that it completes no more
	// stages. The status of such a pod does not show whether it was ever Ready.
	Ended bool
}

// Stage describes a stage of a pod's startup.
type Stage struct {
	Name StageName
	// Start is the time at which the stage started and the previous stage ended.
	Start time.Time
	// Duration is the stage's duration. It is zero for a stage that is not completed, except in the
	// result of [Timeline.At].
	Duration time.Duration
	// Share is the stage's share of the timeline's total duration, from 0 to 1. It is 0 if the
	// total is 0.
	Share float64
	// Done is true if the pod has completed the stage. All stages but the last are Done.
	Done bool
	// Estimated is true if the end of the stage was estimated, because its time in the pod's status
	// is missing, inexact or implausible. A time before the pod's creation or after the end of a
	// later stage is implausible. The nearest plausible time is then used.
	Estimated bool
	// Waits lists the reasons for which the pod waits in this stage. For a completed stage, it
	// lists the reasons that the status still contains. Completed scheduling and image pulls leave
	// no trace in the status; only events record them, for an hour.
	Waits []Wait
}

// End returns the time at which the stage ended. For a stage that is not Done, it is the time until
// which the stage is known to have lasted.
func (s Stage) End() time.Time { return s.Start.Add(s.Duration) }

// Ready reports whether the timeline ends with the completed stage [Ready].
func (t Timeline) Ready() bool {
	return len(t.Stages) == len(stages) && t.Stages[len(stages)-1].Done
}

// Total returns the time from the pod's creation to the end of the last stage.
func (t Timeline) Total() time.Duration {
	var total time.Duration
	for _, s := range t.Stages {
		total += s.Duration
	}
	return total
}

// Slowest returns the stage with the longest duration. If several stages are equally long, it
// returns the first of them. It returns false if there are no stages.
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

// At returns a copy of the timeline in which the current stage, if any, lasts until now. Each
// stage's share of the total duration is recomputed.
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

// stages lists the startup stages in order. end returns the end of the stage, and waits returns the
// reasons for which a pod waits in the stage.
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

// New returns a pod's timeline.
//
// A pod's status contains only the last transition of each condition. If a pod became Ready a
// second time, or if the kubelet rewrote its conditions, the timeline therefore ends at the last
// transition. If conditions contradict each other, the condition of the later stage counts. For
// example, a pod that is Ready must have been initialized at that time or before.
func New(pod *corev1.Pod) Timeline {
	t := stagesOf(pod)
	for i := range t.Stages {
		t.Stages[i].Waits = stages[i].waits(pod, t.Stages[i])
	}
	t.Restarts = restarts(pod, t)
	t.setShares()
	return t
}

// Durations is like [New], but costs less, because it omits the reasons for waiting, the restarts
// and the shares.
func Durations(pod *corev1.Pod) Timeline { return stagesOf(pod) }

// stagesOf returns a timeline without the reasons for waiting, the restarts and the shares. The
// cache uses it, because it computes the timeline at each change of each pod.
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

	// Iterate backwards, because no stage can end after a later stage.
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

// plausible reports whether a stage of a pod that was created at the time `created` can have ended
// at the time `at`.
func plausible(created, at time.Time) bool {
	return !at.Before(created) && at.Sub(created) < maxStartup
}

// creation returns the pod's creation time. If that is missing, it returns the earliest end of a
// stage.
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

// restarts returns the number of container restarts during the startup.
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

// restartedDuringStartup reports whether a container was restarted and its last start was not after
// the pod became Ready.
func restartedDuringStartup(s *corev1.ContainerStatus, t Timeline) bool {
	if s.RestartCount <= 0 {
		return false
	}
	if !t.Ready() || s.State.Running == nil {
		return true
	}
	return !s.State.Running.StartedAt.Truncate(Resolution).After(t.Stages[len(t.Stages)-1].End())
}
