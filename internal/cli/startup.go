// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"tidekeeper.dev/tidekeeper/internal/podstartup"
)

// startup is how one pod came up, as it is printed for programs. Lengths are in
// whole seconds, and can be off by one either way.
type startup struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Node      string    `json:"node,omitempty"`
	Created   time.Time `json:"created"`
	// Ready, or Ended: neither is on its way.
	Ready bool `json:"ready"`
	Ended bool `json:"ended,omitempty"`
	// Seconds is how long it took, or has taken by now.
	Seconds  int64           `json:"seconds"`
	Restarts int64           `json:"restarts,omitempty"`
	Slowest  *startupSlowest `json:"slowest,omitempty"`
	Stages   []startupStage  `json:"stages"`
}

type startupSlowest struct {
	Stage   podstartup.StageName `json:"stage"`
	Seconds int64                `json:"seconds"`
	Cause   string               `json:"cause"`
}

type startupStage struct {
	Name      podstartup.StageName `json:"name"`
	Start     time.Time            `json:"start"`
	Seconds   int64                `json:"seconds"`
	Share     float64              `json:"share"`
	Done      bool                 `json:"done"`
	Estimated bool                 `json:"estimated,omitempty"`
	WaitedFor string               `json:"waitedFor,omitempty"`
}

// startupOf is the start-up of a pod as it is at a time; events are those of the
// pod, and may be none.
func startupOf(pod *corev1.Pod, events []corev1.Event, now time.Time) startup {
	t := podstartup.TimelineOf(pod).At(now)
	s := startup{
		Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, Created: t.Created, Ready: t.Ready(), Ended: t.Ended,
		Seconds: int64(t.Whole() / time.Second), Restarts: t.Restarts, Stages: []startupStage{},
	}
	for _, stage := range t.Stages {
		s.Stages = append(s.Stages, startupStage{
			Name: stage.Name, Start: stage.Start, Seconds: int64(stage.Length / time.Second), Share: stage.Share,
			Done: stage.Done, Estimated: stage.Estimated, WaitedFor: waitedFor(stage, events),
		})
	}
	if slowest, ok := t.Slowest(); ok && slowest.Length > 0 {
		s.Slowest = &startupSlowest{Stage: slowest.Name, Seconds: int64(slowest.Length / time.Second), Cause: causeOf(slowest, events)}
	}
	return s
}

// stageMeanings say what a pod can wait for in a stage.
var stageMeanings = map[podstartup.StageName]string{
	podstartup.Scheduled:         "the scheduler, or a node with room",
	podstartup.Initialized:       "network, volumes or init containers",
	podstartup.ContainersStarted: "images, or the start of the containers",
	podstartup.ContainersReady:   "startup and readiness probes",
	podstartup.Ready:             "readiness gates",
}

// causeOf says what a pod waited for in a stage.
func causeOf(stage podstartup.Stage, events []corev1.Event) string {
	if text := waitedFor(stage, events); text != "" {
		return text
	}
	return "not told; this stage is for " + stageMeanings[stage.Name]
}

// waitedFor says what the pod or its events tell of that; "" if nothing.
func waitedFor(stage podstartup.Stage, events []corev1.Event) string {
	var texts []string
	for _, w := range stage.Waits {
		texts = append(texts, waitWords(w))
	}
	if len(texts) == 0 {
		if text := eventOf(stage, events); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// waitWords puts a wait into words.
func waitWords(w podstartup.Wait) string {
	why := reasonAndMessage(w.Reason, w.Message)
	var text string
	switch w.Kind {
	case podstartup.ForScheduler:
		return why
	case podstartup.ForImage:
		text = "image of " + w.Name
	case podstartup.ForInitContainer:
		text = "init container " + w.Name
	case podstartup.ForReadinessGate:
		text = "readiness gate " + w.Name
	case podstartup.ForRestart, podstartup.ForContainer:
		text = "container " + w.Name
	}
	switch {
	case w.Reason == podstartup.ReasonCompleted && w.Kind == podstartup.ForInitContainer:
		why = fmt.Sprintf("took %s", lengthWords(w.Length))
	case w.Reason == podstartup.ReasonRunning:
		why = "still runs"
	case w.Reason == podstartup.ReasonStartupProbe:
		why = "startup probe has not succeeded"
	case w.Reason == podstartup.ReasonReadinessProbe:
		why = "readiness probe has not succeeded"
	case w.Reason == podstartup.ReasonNotSet:
		why = "nobody has set it"
	}
	if why != "" {
		text += ": " + why
	}
	if w.Restarts > 0 {
		text += fmt.Sprintf(" (%s)", plural(int(w.Restarts), "restart"))
	}
	return text
}

// eventReasons are the events that tell what a pod waited for in a stage: a pod
// itself forgets that when the wait is over.
var eventReasons = map[podstartup.StageName][]string{
	podstartup.Scheduled:         {"FailedScheduling"},
	podstartup.Initialized:       {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed", "BackOff", "Pulled"},
	podstartup.ContainersStarted: {"Failed", "BackOff", "Pulled"},
	podstartup.ContainersReady:   {"Unhealthy", "BackOff"},
}

// eventOf returns what the last event in a stage says that tells what the pod
// waited for. Warnings go before others.
func eventOf(stage podstartup.Stage, events []corev1.Event) string {
	var found *corev1.Event
	for i := range events {
		e := &events[i]
		at := lastSeen(e)
		if !slices.Contains(eventReasons[stage.Name], e.Reason) || at.Before(stage.Start) || at.After(stage.End().Add(podstartup.Grain)) {
			continue
		}
		if found == nil || e.Type != found.Type && e.Type == corev1.EventTypeWarning || e.Type == found.Type && !at.Before(lastSeen(found)) {
			found = e
		}
	}
	if found == nil {
		return ""
	}
	return reasonAndMessage(found.Reason, oneLine(found.Message))
}

// seconds is a length of so many.
func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// lengthWords is a length in whole seconds, which may be nothing of one.
func lengthWords(length time.Duration) string {
	if length < podstartup.Grain {
		return "<1s"
	}
	return duration.HumanDuration(length)
}
