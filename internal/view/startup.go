// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// Startup describes a pod's start-up. Durations are in whole seconds, and may be off by one second.
type Startup struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Node      string    `json:"node,omitempty"`
	Created   time.Time `json:"created"`
	// Ready is set if the pod is ready. Ended is set if the pod has terminated. If neither is set,
	// the pod is still starting.
	Ready bool `json:"ready"`
	Ended bool `json:"ended,omitempty"`
	// Seconds is the duration of the start-up. For a pod that is still starting, it is the duration
	// so far.
	Seconds  int64          `json:"seconds"`
	Restarts int64          `json:"restarts,omitempty"`
	Slowest  *SlowestStage  `json:"slowest,omitempty"`
	Stages   []StartupStage `json:"stages"`
	// ReadyAgain is the time at which the pod became ready again after it had not been ready for a
	// while. In this case, Seconds only counts until the containers are ready. ReadyAgain is zero
	// if the pod has not become ready again.
	ReadyAgain time.Time `json:"readyAgain,omitzero"`
	UID        string    `json:"-"`
	// Workload is the kind and name of the pod's workload.
	Workload string `json:"-"`

	timeline podtimeline.Timeline
}

// SlowestStage is the longest stage of a pod's start-up.
type SlowestStage struct {
	Stage   podtimeline.StageName `json:"stage"`
	Seconds int64                 `json:"seconds"`
	Cause   string                `json:"cause"`
	// Known is set if the pod or its events show the cause of the stage's duration.
	Known bool `json:"-"`
}

// StartupStage is a stage of a pod's start-up.
type StartupStage struct {
	Name      podtimeline.StageName `json:"name"`
	Start     time.Time             `json:"start"`
	Seconds   int64                 `json:"seconds"`
	Share     float64               `json:"share"`
	Done      bool                  `json:"done"`
	Estimated bool                  `json:"estimated,omitempty"`
	WaitedFor string                `json:"waitedFor,omitempty"`
}

// StartupOf returns a pod's start-up as of now. The parameter events lists the events about the
// pod. It may be empty.
func StartupOf(pod *corev1.Pod, events []corev1.Event, now time.Time) Startup {
	t := podtimeline.New(pod)
	again := endWithContainers(&t, pod)
	t = t.At(now)
	s := Startup{
		Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, Created: t.Created, Ready: t.Ready(), Ended: t.Ended,
		Seconds: int64(t.Total() / time.Second), Restarts: t.Restarts, Stages: []StartupStage{}, ReadyAgain: again, Workload: pods.WorkloadName(pod),
		UID: string(pod.UID), timeline: t,
	}
	s.Explain(events)
	return s
}

// endWithContainers changes the timeline of a pod that became ready again after it had not been
// ready: the start-up then ends when the containers are ready. It returns the time at which the pod
// became ready again, or the zero time.
func endWithContainers(t *podtimeline.Timeline, pod *corev1.Pod) time.Time {
	again := podtimeline.ReadyAgain(pod)
	if n := len(t.Stages); n > 0 && !again.IsZero() && t.Stages[n-1].Name == podtimeline.Ready {
		t.Stages[n-1].Duration, t.Stages[n-1].Estimated = 0, true
	}
	return again
}

// ReadyAfter returns the fields Ready, Ended and Seconds of a pod's [Startup], at less cost than
// [StartupOf]. seconds is 0 if the pod is not ready.
func ReadyAfter(pod *corev1.Pod) (ready, ended bool, seconds int64) {
	t := podtimeline.Durations(pod)
	endWithContainers(&t, pod)
	if ready = t.Ready(); ready {
		seconds = int64(t.Total() / time.Second)
	}
	return ready, t.Ended, seconds
}

// Explain sets the stages and the slowest stage of the start-up. The cause of waiting in each stage
// is taken from the pod and the given events.
func (s *Startup) Explain(events []corev1.Event) {
	t := s.timeline
	s.Stages, s.Slowest = make([]StartupStage, 0, len(t.Stages)), nil
	for _, stage := range t.Stages {
		s.Stages = append(s.Stages, StartupStage{
			Name: stage.Name, Start: stage.Start, Seconds: int64(stage.Duration / time.Second), Share: stage.Share,
			Done: stage.Done, Estimated: stage.Estimated, WaitedFor: waitedFor(stage, events),
		})
	}
	if slowest, ok := t.Slowest(); ok && slowest.Duration > 0 {
		s.Slowest = &SlowestStage{Stage: slowest.Name, Seconds: int64(slowest.Duration / time.Second), Cause: waitedFor(slowest, events), Known: true}
		if s.Slowest.Cause == "" {
			s.Slowest.Cause, s.Slowest.Known = "unknown; this stage waits for "+stageMeanings[slowest.Name], false
		}
	}
}

// Slowest returns copies of at most `top` start-ups, the slowest first. It sorts only these
// start-ups instead of all, because startups can be far longer than `top`.
func Slowest(startups []Startup, top int) []Startup {
	slowest := make([]*Startup, 0, min(top, len(startups)))
	for i := range startups {
		s := &startups[i]
		if len(slowest) == top && (top == 0 || compareSlowness(slowest[top-1], s) <= 0) {
			continue
		}
		if len(slowest) == top {
			slowest = slowest[:top-1]
		}
		at, _ := slices.BinarySearchFunc(slowest, s, compareSlowness)
		slowest = slices.Insert(slowest, at, s)
	}
	list := make([]Startup, len(slowest))
	for i, s := range slowest {
		list[i] = *s
	}
	return list
}

// compareSlowness orders start-ups by descending duration, and then by the pod's namespace and
// name.
func compareSlowness(a, b *Startup) int {
	return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
}

// StartupSummary summarizes the start-ups of several pods.
type StartupSummary struct {
	Pods, Ready   int
	MedianSeconds int64 // median duration of the ready pods
	Worst         Startup
	// SlowestStage is the stage that is the slowest stage of the most pods. SlowestOf is the number
	// of these pods.
	SlowestStage podtimeline.StageName
	SlowestOf    int
}

// SummaryOf summarizes start-ups, of which there must be at least one.
func SummaryOf(startups []Startup) StartupSummary {
	s := StartupSummary{Pods: len(startups), Worst: startups[0]}
	var ready []int64
	count, took := map[podtimeline.StageName]int{}, map[podtimeline.StageName]int64{}
	for _, one := range startups {
		if one.Ready {
			ready = append(ready, one.Seconds)
			if !s.Worst.Ready || one.Seconds > s.Worst.Seconds {
				s.Worst = one
			}
		}
		if one.Slowest != nil {
			count[one.Slowest.Stage]++
			took[one.Slowest.Stage] += one.Slowest.Seconds
		}
	}
	s.Ready = len(ready)
	if len(ready) > 0 {
		slices.Sort(ready)
		s.MedianSeconds = ready[(len(ready)-1)/2]
	}
	// If two stages are the slowest for equally many pods, choose the stage with the longer total
	// duration.
	s.SlowestStage = slices.MaxFunc(podtimeline.StageNames(), func(a, b podtimeline.StageName) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(took[a], took[b]))
	})
	s.SlowestOf = count[s.SlowestStage]
	return s
}
