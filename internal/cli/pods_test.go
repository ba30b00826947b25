// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/podstartup"
	"tidekeeper.dev/tidekeeper/internal/podwatch"
)

// aStartedPod was created at noon, and each stage took so many seconds; fewer
// than five are a pod that is still on its way.
func aStartedPod(name string, seconds ...int) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.CreationTimestamp = name, metav1.NewTime(noon)
	p.Spec.Containers = []corev1.Container{{Name: "app"}}
	end := noon
	for i, n := range seconds {
		end = end.Add(time.Duration(n) * time.Second)
		stage := podstartup.StageNames()[i]
		kinds := map[podstartup.StageName]corev1.PodConditionType{
			podstartup.Scheduled: corev1.PodScheduled, podstartup.Initialized: corev1.PodInitialized,
			podstartup.ContainersReady: corev1.ContainersReady, podstartup.Ready: corev1.PodReady,
		}
		if stage == podstartup.ContainersStarted {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(end)}},
			}}
			continue
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: kinds[stage], Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(end),
		})
	}
	return p
}

func TestWaterfall(t *testing.T) {
	up := aStartedPod("网", 1, 2, 0, 5, 0)
	waits := aStartedPod("web", 1, 2)
	waits.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no\nsuch \x1b[2Jimage 像"},
	}}}
	later := noon.Add(8 * time.Second)
	for _, tc := range []struct {
		name   string
		pod    *corev1.Pod
		screen screen
		want   []string
	}{
		{"a pipe", up, screen{}, []string{
			"网: ready 8s after it was created",
			"slowest: containers ready, 5s: not told; this stage is for startup and readiness probes",
			"STAGE                AT         TOOK (±1s)",
			"created              12:00:00",
			"scheduled            12:00:01   1s",
			"initialized          12:00:03   2s",
			"containers started   12:00:03   <1s",
			"containers ready     12:00:08   5s",
			"ready                12:00:08   <1s",
		}},
		{"a terminal", up, screen{terminal: true, width: 80}, []string{
			"网: ready 8s after it was created",
			"slowest: containers ready, 5s: not told; this stage is for startup and readiness probes",
			"STAGE                AT         TOOK (±1s)   WATERFALL",
			"created              12:00:00",
			"scheduled            12:00:01   1s           ██▌",
			"initialized          12:00:03   2s              █████",
			"containers started   12:00:03   <1s                  ▏",
			"containers ready     12:00:08   5s                   ████████████▌",
			"ready                12:00:08   <1s                             ▏",
		}},
		{"a narrow one, and a wait", waits, screen{terminal: true, width: 54}, []string{
			"web: not ready for 8s",
			"slowest: containers started, 5s: image of app: ImagePullBackOff: no such [2Jimage 像",
			"STAGE                AT         TOOK (±1s)   WAITED F…",
			"created              12:00:00",
			"scheduled            12:00:01   1s",
			"initialized          12:00:03   2s",
			"containers started   -          5s so far    image of…",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			a := &app{out: &out, screen: tc.screen, local: time.UTC}
			if err := a.writeTimelines([]startup{startupOf(tc.pod, nil, later)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(tc.want, "\n")+"\n", out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Of waits that are over the events tell, those of the stage, warnings first.
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
	s := startupOf(aStartedPod("web", 4, 0, 6, 1, 0), events, noon.Add(time.Hour))
	got := map[podstartup.StageName]string{}
	for _, stage := range s.Stages {
		got[stage.Name] = stage.WaitedFor
	}
	want := map[podstartup.StageName]string{
		podstartup.Scheduled: "FailedScheduling: 0/3 nodes are available", podstartup.Initialized: "",
		podstartup.ContainersStarted: "Failed: failed to pull", podstartup.ContainersReady: "", podstartup.Ready: "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Slowest.Cause != "Failed: failed to pull" {
		t.Errorf("slowest for %q", s.Slowest.Cause)
	}
}

func TestWaitWords(t *testing.T) {
	for want, w := range map[string]podstartup.Wait{
		"Unschedulable: no node":                                    {Kind: podstartup.ForScheduler, Reason: "Unschedulable", Message: "no node"},
		"init container setup: took 3s":                             {Kind: podstartup.ForInitContainer, Name: "setup", Reason: podstartup.ReasonCompleted, Length: 3 * time.Second},
		"init container setup: still runs":                          {Kind: podstartup.ForInitContainer, Name: "setup", Reason: podstartup.ReasonRunning},
		"container app: startup probe has not succeeded":            {Kind: podstartup.ForContainer, Name: "app", Reason: podstartup.ReasonStartupProbe},
		"container app: Error: ended with exit code 1 (2 restarts)": {Kind: podstartup.ForRestart, Name: "app", Reason: "Error", Message: "ended with exit code 1", Restarts: 2},
		"readiness gate example.com/lb: nobody has set it":          {Kind: podstartup.ForReadinessGate, Name: "example.com/lb", Reason: podstartup.ReasonNotSet},
		"image of app: ImagePullBackOff: Back-off":                  {Kind: podstartup.ForImage, Name: "app", Reason: "ImagePullBackOff", Message: "Back-off"},
	} {
		if got := waitWords(w); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}

func TestPodLines(t *testing.T) {
	at := noon.Add(time.Second)
	lines := []podwatch.Transition{
		{Kind: podwatch.Found, To: "Running", Message: "ready"},
		{Kind: podwatch.Condition, Name: "Ready", To: "True", From: "True", Again: true, Time: at},
		{Kind: podwatch.Condition, Name: "example.com/gate", From: "True"},
		{Kind: podwatch.Container, Name: "app", To: podwatch.Running, Restarts: 2, Time: at.Add(-24 * time.Hour)},
		{Kind: podwatch.Deleted, Message: "while nobody was\x1b[2J connected"},
	}
	var out bytes.Buffer
	p := newPodLines(&app{out: &out, local: time.UTC}, true, false)
	for _, l := range lines {
		l.Namespace, l.Pod, l.Seen = "shop", "网-0", at
		if err := p.print(l); err != nil {
			t.Fatal(err)
		}
	}
	want := `NAMESPACE   TIME        POD                    WHAT                        STATE        WHY
shop        ~12:00:01   网-0                   Found                       Running      ready
shop         12:00:01   网-0                   Ready                       True again
shop        ~12:00:01   网-0                   example.com/gate            gone
shop        2026-11-20 12:00:01   网-0                   container app               running      2 restarts
shop        ~12:00:01             网-0                   Deleted                                  while nobody was[2J connected
`
	want = strings.ReplaceAll(want, "2026-11-20", at.Add(-24*time.Hour).Format(time.DateOnly))
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What could not be printed is printed with the header the next time.
	failing := newPodLines(&app{out: brokenWriter{}, local: time.UTC}, false, false)
	if err := failing.print(lines[0]); err == nil || failing.header {
		t.Errorf("a line that could not be written: %v, header %t", err, failing.header)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestCommonOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		pods [][]int
		want string
	}{
		{"none is slow", [][]int{{0, 0, 0, 0, 0}}, "1 pod, 1 ready: after <1s (median), <1s (a, the slowest)"},
		{"what is it most often", [][]int{{9, 0, 0, 0, 0}, {0, 0, 0, 2, 0}, {0, 0, 0, 1, 0}},
			"3 pods, 3 ready: after 2s (median), 9s (a, the slowest); containers ready is the slowest stage of 2"},
		{"as often, and longer", [][]int{{1, 0, 0, 0, 0}, {0, 1, 0, 5, 0}},
			"2 pods, 2 ready: after 1s (median), 6s (b, the slowest); containers ready is the slowest stage of 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var startups []startup
			for i, seconds := range tt.pods {
				startups = append(startups, startupOf(aStartedPod(string(rune('a'+i)), seconds...), nil, noon.Add(time.Hour)))
			}
			if diff := cmp.Diff(tt.want, commonOf(startups)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
