// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// aStartedPod returns a pod that was created at noon and scheduled 4 seconds later. Its container
// started after another 6 seconds, and the pod was ready after another second.
func aStartedPod() *corev1.Pod {
	after := func(seconds int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)) }
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: after(0)}}
	p.Spec.Containers = []corev1.Container{{Name: "app"}}
	for kind, seconds := range map[corev1.PodConditionType]int{corev1.PodScheduled: 4, corev1.PodInitialized: 4, corev1.ContainersReady: 11, corev1.PodReady: 11} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: after(seconds)})
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(10)}}}}
	return p
}

// TestCausesFromEvents checks that the cause of a past wait is found in the events of the stage,
// and that warnings take precedence.
func TestCausesFromEvents(t *testing.T) {
	event := func(seconds int, kind, reason, message string) corev1.Event {
		return corev1.Event{LastTimestamp: metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)), Type: kind, Reason: reason, Message: message}
	}
	events := []corev1.Event{
		event(2, "Warning", "FailedScheduling", "0/3 nodes are\navailable"),
		event(1, "Warning", "FailedScheduling", "an earlier one"),
		event(60, "Warning", "FailedScheduling", "of another time"),
		event(9, "Normal", "Pulled", "pulled in 5s"),
		event(8, "Warning", "Failed", "failed to pull"),
		event(20, "Normal", "Scheduled", "of another kind"),
	}
	s := StartupOf(aStartedPod(), events, noon.Add(time.Hour))
	got := map[podtimeline.StageName]string{}
	for _, stage := range s.Stages {
		got[stage.Name] = stage.WaitedFor
	}
	want := map[podtimeline.StageName]string{
		podtimeline.Scheduled: "FailedScheduling: 0/3 nodes are available", podtimeline.Initialized: "",
		podtimeline.ContainersStarted: "Failed: failed to pull", podtimeline.ContainersReady: "", podtimeline.Ready: "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Slowest.Cause != "Failed: failed to pull" {
		t.Errorf("slowest for %q", s.Slowest.Cause)
	}
}

// TestEventsOfContainersAreNotOfEarlierStages checks that an event about a container does not
// explain an earlier stage, even if it occurred in the same second. An event about an init
// container must explain the stage Initialized.
func TestEventsOfContainersAreNotOfEarlierStages(t *testing.T) {
	event := func(path, reason string) corev1.Event {
		return corev1.Event{
			LastTimestamp: metav1.NewTime(noon.Add(4 * time.Second)), Type: "Warning", Reason: reason, Message: reason + " of " + path,
			InvolvedObject: corev1.ObjectReference{FieldPath: path},
		}
	}
	for path, want := range map[string]string{"spec.containers{app}": "", "spec.initContainers{setup}": "BackOff: BackOff of spec.initContainers{setup}"} {
		s := StartupOf(aStartedPod(), []corev1.Event{event(path, "BackOff"), event(path, "FailedScheduling")}, noon.Add(time.Hour))
		for _, stage := range s.Stages {
			if stage.Name == podtimeline.Initialized && stage.WaitedFor != want || stage.Name == podtimeline.Scheduled && path == "spec.containers{app}" && stage.WaitedFor != "" {
				t.Errorf("an event about %s: %s waited for %q", path, stage.Name, stage.WaitedFor)
			}
			if stage.Name == podtimeline.ContainersStarted && stage.WaitedFor == "" {
				t.Errorf("an event about %s is not what %s waited for", path, stage.Name)
			}
		}
	}
}

// TestPulls checks that an image pull is reported as the cause of a wait only if the pod had to
// wait for it.
func TestPulls(t *testing.T) {
	for message, shown := range map[string]bool{
		`Successfully pulled image "web:1" in 1.2s (4.5s including waiting). Image size: 1024 bytes.`:   true,
		`Successfully pulled image "web:1" in 300ms (4.5s including waiting). Image size: 1024 bytes.`:  true,
		`Successfully pulled image "web:1" in 300ms (300ms including waiting). Image size: 1024 bytes.`: false,
		`Successfully pulled image "web:1" in 0s (0s including waiting).`:                               false,
		`Container image "web:1" already present on machine and can be accessed by the pod`:             false,
		`Container image "web:1" already present on machine`:                                            false,
		`Successfully pulled image "web:1"`:                                                             true,
	} {
		event := corev1.Event{LastTimestamp: metav1.NewTime(noon.Add(9 * time.Second)), Type: "Normal", Reason: "Pulled", Message: message}
		want := "unknown; this stage waits for images, or the start of the containers"
		if shown {
			want = "Pulled: " + message
		}
		if got := StartupOf(aStartedPod(), []corev1.Event{event}, noon.Add(time.Hour)).Slowest.Cause; got != want {
			t.Errorf("of %q, %q is shown", message, got)
		}
	}
}

func TestFormatWait(t *testing.T) {
	for want, w := range map[string]podtimeline.Wait{
		"Unschedulable: no node":                                    {Kind: podtimeline.ForScheduler, Reason: "Unschedulable", Message: "no node"},
		"init container setup: took 3s":                             {Kind: podtimeline.ForInitContainer, Name: "setup", Reason: podtimeline.ReasonCompleted, Duration: 3 * time.Second},
		"init container setup: still runs":                          {Kind: podtimeline.ForInitContainer, Name: "setup", Reason: podtimeline.ReasonRunning},
		"container app: startup probe has not succeeded":            {Kind: podtimeline.ForContainer, Name: "app", Reason: podtimeline.ReasonStartupProbe},
		"container app: Error: ended with exit code 1 (2 restarts)": {Kind: podtimeline.ForRestart, Name: "app", Reason: "Error", Message: "ended with exit code 1", Restarts: 2},
		"readiness gate example.com/lb: not set":                    {Kind: podtimeline.ForReadinessGate, Name: "example.com/lb", Reason: podtimeline.ReasonNotSet},
		"image of app: ImagePullBackOff: Back-off":                  {Kind: podtimeline.ForImage, Name: "app", Reason: "ImagePullBackOff", Message: "Back-off"},
	} {
		if got := formatWait(w); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}

// TestReadyAgainIsNotSlow checks that the start-up of a pod that became ready again ends when its
// containers are ready. For a pod with a readiness gate, it ends when the pod is ready, because the
// gate may have taken that long.
func TestReadyAgainIsNotSlow(t *testing.T) {
	ready := func(after time.Duration, gates ...corev1.PodReadinessGate) Startup {
		p := aStartedPod()
		p.Spec.ReadinessGates = gates
		for i := range p.Status.Conditions {
			if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
				c.LastTransitionTime = metav1.NewTime(noon.Add(after))
			}
		}
		return StartupOf(p, nil, noon.Add(time.Hour))
	}
	again := ready(20 * time.Minute)
	if at := noon.Add(20 * time.Minute); again.Seconds != 11 || again.Slowest.Stage == podtimeline.Ready || !again.ReadyAgain.Equal(at) || !again.Ready {
		t.Errorf("after an outage: %d s, the slowest is %+v, again at %s", again.Seconds, again.Slowest, again.ReadyAgain)
	}
	for name, s := range map[string]Startup{"a gate": ready(20*time.Minute, corev1.PodReadinessGate{ConditionType: "lb"}), "a second": ready(12 * time.Second)} {
		if s.Seconds < 12 || !s.ReadyAgain.IsZero() {
			t.Errorf("with %s: %d s, again at %s", name, s.Seconds, s.ReadyAgain)
		}
	}
}
