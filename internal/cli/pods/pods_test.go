// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/pods/podwatch"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// aStartedPod returns a pod that was created at noon. seconds lists the durations of its start-up
// stages; with fewer than five, the pod is still starting.
func aStartedPod(name string, seconds ...int) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.CreationTimestamp = name, metav1.NewTime(noon)
	p.Spec.Containers = []corev1.Container{{Name: "app"}}
	end := noon
	for i, n := range seconds {
		end = end.Add(time.Duration(n) * time.Second)
		stage := podtimeline.StageNames()[i]
		kinds := map[podtimeline.StageName]corev1.PodConditionType{
			podtimeline.Scheduled: corev1.PodScheduled, podtimeline.Initialized: corev1.PodInitialized,
			podtimeline.ContainersReady: corev1.ContainersReady, podtimeline.Ready: corev1.PodReady,
		}
		if stage == podtimeline.ContainersStarted {
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
		screen term.Screen
		want   []string
	}{
		{"a pipe", up, term.Screen{}, []string{
			"网: ready 8s after it was created",
			"slowest: containers ready, 5s: unknown; this stage waits for startup and readiness probes",
			"STAGE                AT (UTC)   TOOK (±1s)",
			"created              12:00:00",
			"scheduled            12:00:01   1s",
			"initialized          12:00:03   2s",
			"containers started   12:00:03   <1s",
			"containers ready     12:00:08   5s",
			"ready                12:00:08   <1s",
		}},
		{"a terminal", up, term.Screen{Terminal: true, Width: 80}, []string{
			"网: ready 8s after it was created",
			"slowest: containers ready, 5s: unknown; this stage waits for startup and readiness probes",
			"STAGE                AT (UTC)   TOOK (±1s)   WATERFALL",
			"created              12:00:00",
			"scheduled            12:00:01   1s           ██▌",
			"initialized          12:00:03   2s              █████",
			"containers started   12:00:03   <1s                  ▏",
			"containers ready     12:00:08   5s                   ████████████▌",
			"ready                12:00:08   <1s                             ▏",
		}},
		{"a narrow one, and a wait", waits, term.Screen{Terminal: true, Width: 54}, []string{
			"web: not ready for 8s",
			"slowest: containers started, 5s: image of app: ImagePullBackOff: no such [2Jimage 像",
			"STAGE                AT (UTC)   TOOK (±1s)   WAITED F…",
			"created              12:00:00",
			"scheduled            12:00:01   1s",
			"initialized          12:00:03   2s",
			"containers started   -          5s so far    image of…",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			e := &cmdutil.Env{Console: cmdutil.Console{Out: &out, Screen: tc.screen}, Local: time.UTC, Now: func() time.Time { return noon }}
			if err := printTimelines(e, []view.Startup{view.StartupOf(tc.pod, nil, later)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(tc.want, "\n")+"\n", out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodLines(t *testing.T) {
	at := noon.Add(time.Second)
	lines := []podwatch.Transition{
		{Kind: podwatch.Found, To: "Running", Message: "ready"},
		{Kind: podwatch.Condition, Name: "Ready", To: "True", From: "True", Repeated: true, Time: at},
		{Kind: podwatch.Condition, Name: "example.com/gate", From: "True"},
		{Kind: podwatch.Container, Name: "app", To: podwatch.Running, Restarts: 2, Time: at.Add(-24 * time.Hour)},
		{Kind: podwatch.Phase, From: "Pending", To: "Running"},
		{Kind: podwatch.Deleted, From: "Succeeded", Message: "while no watch was\x1b[2J connected"},
	}
	var out bytes.Buffer
	p := newPodLines(&cmdutil.Env{Console: cmdutil.Console{Out: &out}, Local: time.UTC}, true, false)
	for _, l := range lines {
		l.Namespace, l.Pod, l.Seen = "shop", "网-0", at
		if err := p.print(l); err != nil {
			t.Fatal(err)
		}
	}
	want := `NAMESPACE   TIME (UTC)   POD                    WHAT                        STATE                WHY
shop        ~12:00:01    网-0                   Found                       Running              ready
shop         12:00:01    网-0                   Ready                       True again
shop        ~12:00:01    网-0                   example.com/gate            gone
shop        2026-11-20 12:00:01   网-0                   container app               running              2 restarts
shop        ~12:00:01             网-0                   Phase                       Pending to Running
shop        ~12:00:01             网-0                   Deleted                     was Succeeded        while no watch was[2J connected
`
	want = strings.ReplaceAll(want, "2026-11-20", at.Add(-24*time.Hour).Format(time.DateOnly))
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// If printing a line failed, the next line must still have the header.
	failing := newPodLines(&cmdutil.Env{Console: cmdutil.Console{Out: brokenWriter{}}, Local: time.UTC}, false, false)
	if err := failing.print(lines[0]); err == nil || failing.header {
		t.Errorf("a line that could not be written: %v, header %t", err, failing.header)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSummaryLine(t *testing.T) {
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
			var startups []view.Startup
			for i, seconds := range tt.pods {
				startups = append(startups, view.StartupOf(aStartedPod(string(rune('a'+i)), seconds...), nil, noon.Add(time.Hour)))
			}
			if diff := cmp.Diff(tt.want, summaryLine(view.SummaryOf(startups))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhichPodsAreSlow checks which pods --ready and --name select. They correspond to the lists
// and the filter of the dashboard.
func TestWhichPodsAreSlow(t *testing.T) {
	starting, ready, ended := view.Startup{Namespace: "shop", Pod: "Web-1"}, view.Startup{Namespace: "shop", Pod: "web-2", Ready: true}, view.Startup{Namespace: "web", Pod: "x", Ended: true}
	for name, tc := range map[string]struct {
		o    slowOptions
		want []bool
	}{
		"all":           {slowOptions{}, []bool{true, true, false}},
		"ready":         {slowOptions{readyGiven: true, ready: true}, []bool{false, true, false}},
		"not ready":     {slowOptions{readyGiven: true}, []bool{true, false, false}},
		"by name":       {slowOptions{name: "WEB-1"}, []bool{true, false, false}},
		"by namespace":  {slowOptions{name: "hop/w"}, []bool{true, true, false}},
		"of no pod":     {slowOptions{name: "db"}, []bool{false, false, false}},
		"ready by name": {slowOptions{readyGiven: true, ready: true, name: "web-1"}, []bool{false, false, false}},
	} {
		var got []bool
		for _, s := range []view.Startup{starting, ready, ended} {
			got = append(got, tc.o.counts(&s))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
