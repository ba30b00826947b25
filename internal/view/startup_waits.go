// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// stageMeanings maps each start-up stage to the usual causes of a wait in that stage.
var stageMeanings = map[podtimeline.StageName]string{
	podtimeline.Scheduled:         "the scheduler, or a node with room",
	podtimeline.Initialized:       "network, volumes or init containers",
	podtimeline.ContainersStarted: "images, or the start of the containers",
	podtimeline.ContainersReady:   "startup and readiness probes",
	podtimeline.Ready:             "readiness gates",
}

// waitedFor returns the cause of a stage's wait, as found in the pod or its events. It returns ""
// if the cause is unknown.
func waitedFor(stage podtimeline.Stage, events []corev1.Event) string {
	var texts []string
	for _, w := range stage.Waits {
		texts = append(texts, formatWait(w))
	}
	if len(texts) == 0 {
		if text := eventOf(stage, events); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// formatWait formats a wait, such as "init container setup: took 3s".
func formatWait(w podtimeline.Wait) string {
	why := ReasonAndMessage(w.Reason, w.Message)
	var text string
	switch w.Kind {
	case podtimeline.ForScheduler:
		return why
	case podtimeline.ForImage:
		text = "image of " + w.Name
	case podtimeline.ForInitContainer:
		text = "init container " + w.Name
	case podtimeline.ForReadinessGate:
		text = "readiness gate " + w.Name
	case podtimeline.ForRestart, podtimeline.ForContainer:
		text = "container " + w.Name
	}
	switch {
	case w.Reason == podtimeline.ReasonCompleted && w.Kind == podtimeline.ForInitContainer:
		why = fmt.Sprintf("took %s", FormatLength(w.Duration))
	case w.Reason == podtimeline.ReasonRunning:
		why = "still runs"
	case w.Reason == podtimeline.ReasonStartupProbe:
		why = "startup probe has not succeeded"
	case w.Reason == podtimeline.ReasonReadinessProbe:
		why = "readiness probe has not succeeded"
	case w.Reason == podtimeline.ReasonNotSet:
		why = "not set"
	}
	if why != "" {
		text += ": " + why
	}
	if w.Restarts > 0 {
		text += fmt.Sprintf(" (%s)", plural(int(w.Restarts), "restart"))
	}
	return text
}

// eventReasons maps each stage to the reasons of events that show the cause of a wait. Events are
// needed because the pod no longer shows the cause once the wait is over.
var eventReasons = map[podtimeline.StageName][]string{
	podtimeline.Scheduled:         {"FailedScheduling"},
	podtimeline.Initialized:       {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed", "BackOff", "Pulled"},
	podtimeline.ContainersStarted: {"Failed", "BackOff", "Pulled"},
	podtimeline.ContainersReady:   {"Unhealthy", "BackOff"},
}

// eventOf returns the message of the last event that shows the cause of a stage's wait. Warnings
// take precedence.
func eventOf(stage podtimeline.Stage, events []corev1.Event) string {
	var found *corev1.Event
	for i := range events {
		e := &events[i]
		at := pods.LastSeen(e)
		if !slices.Contains(eventReasons[stage.Name], e.Reason) || beforeContainers(stage.Name) && aboutContainer(e) || pulledAtOnce(e) || at.Before(stage.Start) || at.After(stage.End().Add(podtimeline.Resolution)) {
			continue
		}
		if found == nil || e.Type != found.Type && e.Type == corev1.EventTypeWarning || e.Type == found.Type && !at.Before(pods.LastSeen(found)) {
			found = e
		}
	}
	if found == nil {
		return ""
	}
	return ReasonAndMessage(found.Reason, strings.Join(strings.Fields(found.Message), " "))
}

// beforeContainers reports whether a stage ends before the regular containers start.
func beforeContainers(stage podtimeline.StageName) bool {
	return stage == podtimeline.Scheduled || stage == podtimeline.Initialized
}

// aboutContainer reports whether an event is about a regular container.
func aboutContainer(e *corev1.Event) bool {
	return strings.HasPrefix(e.InvolvedObject.FieldPath, "spec.containers{")
}

// pullTook matches the duration of an image pull in the message of a kubelet event. The duration
// includes the time in the pull queue.
var pullTook = regexp.MustCompile(`in \S+ \((\S+) including waiting\)`)

// pulledAtOnce reports whether an event shows that the container did not have to wait for its
// image.
func pulledAtOnce(e *corev1.Event) bool {
	if e.Reason != "Pulled" {
		return false
	}
	if strings.Contains(e.Message, "already present on machine") {
		return true
	}
	match := pullTook.FindStringSubmatch(e.Message)
	if match == nil {
		return false
	}
	took, err := time.ParseDuration(match[1])
	return err == nil && took < podtimeline.Resolution
}

// ReasonAndMessage joins a reason and a message with a colon. If either is empty, it returns the
// other.
func ReasonAndMessage(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// Seconds converts n seconds to a Duration.
func Seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// FormatLength formats a duration. It formats a duration below one second, the resolution of API
// timestamps, as <1s.
func FormatLength(length time.Duration) string {
	if length < podtimeline.Resolution {
		return "<1s"
	}
	return duration.HumanDuration(length)
}
