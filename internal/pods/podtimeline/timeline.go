// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Resolution is the resolution of the times of a pod: the API truncates them to whole seconds.
// Every duration can be off by up to one Resolution in either direction, and a duration of zero
// means less than one Resolution.
const Resolution = time.Second

// maxStartup is the maximum plausible duration of a startup. A later time counts as a mistake.
const maxStartup = 100 * 365 * 24 * time.Hour

// StageName names a stage by the event that ends it.
type StageName string

// The stages, in the order in which a pod goes through them. The first begins with the creation
// of the pod, each other stage with the end of the previous stage.
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

// Timeline is the startup of a pod, as far as it has come.
type Timeline struct {
	// Created is the creation time of the pod.
	Created time.Time
	// Stages are the stages that the pod has completed, in order and without gaps, followed by
	// the current stage, unless the pod is Ready or Ended.
	Stages []Stage
	// Restarts is the number of restarts of containers during the startup. Restarts of a
	// container that last started after the pod became Ready are left out, because the status
	// does not show how many of them came before.
	Restarts int64
	// Ended means that the pod has ended or is being deleted, and goes through no more stages.
	// Its status does not show whether it was ever Ready.
	Ended bool
}

// Stage is a stage of a pod's startup.
type Stage struct {
	Name StageName
	// Start is the start of the stage, which is the end of the previous stage.
	Start time.Time
	// Duration is the duration of the stage. It is zero for a stage that is not Done, except in
	// the result of [Timeline.At].
	Duration time.Duration
	// Share is the Duration as a share of the total, from 0 to 1; 0 if the total is 0.
	Share float64
	// Done means that the pod has completed the stage. Only the last stage may not be Done.
	Done bool
	// Estimated means that the status does not contain the end of the stage, or has an
	// impossible time, before the creation or after the end of a later stage. The end is then
	// the nearest possible time.
	Estimated bool
	// Waits are the reasons for which the pod waits in this stage; in a completed stage, the
	// reasons that are still in the status. Scheduling and image pulls leave no trace in the
	// status once they are done: only events keep them, for an hour.
	Waits []Wait
}

// End returns the end of the stage or, if it is not Done, the time until which it is known to
// have lasted.
func (s Stage) End() time.Time { return s.Start.Add(s.Duration) }

// Ready reports whether the pod is Ready.
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

// Slowest returns the longest stage, the first if there are several; false if there is no
// stage.
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

// At returns the timeline with the current stage lasting until now, and the shares to match.
// Without a current stage it returns the timeline unchanged.
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

// stages has for each stage the functions that return its end and its reasons for waiting.
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
// For each condition a pod keeps the last transition only. The timeline of a pod that became
// Ready a second time, or whose kubelet rewrote its conditions, therefore ends at the last of
// these times. Where conditions contradict each other, the later stage counts: a pod that is
// Ready was initialized, and not after it became Ready.
func New(pod *corev1.Pod) Timeline {
	t := stagesOf(pod)
	for i := range t.Stages {
		t.Stages[i].Waits = stages[i].waits(pod, t.Stages[i])
	}
	t.Restarts = restarts(pod, t)
	t.setShares()
	return t
}

// stagesOf returns the timeline with the durations of its stages only, for the cache, which
// computes it at each change of each pod.
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

	// Backwards: no stage ended after a later stage.
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

// plausible reports whether a stage of a pod with this creation time can have ended at the
// given time.
func plausible(created, at time.Time) bool {
	return !at.Before(created) && at.Sub(created) < maxStartup
}

// creation returns the creation time of the pod or, if it is missing, the earliest time in the
// status.
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

// restarts returns the number of restarts of containers during the startup.
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

// restartedDuringStartup reports whether a container has restarted, and last started before the
// pod became Ready.
func restartedDuringStartup(s *corev1.ContainerStatus, t Timeline) bool {
	if s.RestartCount <= 0 {
		return false
	}
	if !t.Ready() || s.State.Running == nil {
		return true
	}
	return !s.State.Running.StartedAt.Truncate(Resolution).After(t.Stages[len(t.Stages)-1].End())
}
