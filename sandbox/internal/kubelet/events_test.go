// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// said takes a pod through up to "most" steps. It returns a line with the Events of each step that
// has Events.
func said(t *testing.T, pod *corev1.Pod, most int) []string {
	t.Helper()
	var lines []string
	for range most {
		before := pod.DeepCopy()
		steps, _ := play(t, pod, 1)
		if len(steps) == 0 {
			break
		}
		var events []string
		for _, e := range eventsOf(before, pod, 1500*time.Millisecond) {
			events = append(events, fmt.Sprintf("%s %s", e.reason, strings.NewReplacer("spec.", "", "initContainers", "init", "containers", "").Replace(e.fieldPath)))
		}
		if len(events) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", steps[0], strings.Join(events, ", ")))
		}
	}
	return lines
}

func policy(p corev1.PullPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].ImagePullPolicy = p
		}
	}
}

// second adds a container named "b" to a pod.
func second(image string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "b", Image: image})
	}
}

func TestEventsOfSteps(t *testing.T) {
	const run = "start: Pulling {c}, Pulled {c}, Created {c}, Started {c}"
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"normal":           {podOf(), []string{run}},
		"ready later":      {with(podOf("ready-after", "1s"), gated), []string{run}},
		"slow images":      {podOf("started-after", "1s"), []string{"set-up: Pulling {c}", "start: Pulled {c}, Created {c}, Started {c}"}},
		"always pulled":    {with(podOf("behavior", "crash-loop"), policy(corev1.PullAlways)), []string{run, "crash: BackOff {c}", "re" + run, "crash: BackOff {c}"}},
		"pulled if needed": {podOf("behavior", "crash-loop"), []string{run, "crash: BackOff {c}", "restart: Pulled {c}, Created {c}, Started {c}", "crash: BackOff {c}"}},
		"never pulled":     {with(podOf("started-after", "1s"), policy(corev1.PullNever)), []string{"start: Pulled {c}, Created {c}, Started {c}"}},
		"two containers": {with(podOf("started-after", "1s"), second("j")), []string{
			"set-up: Pulling {c}", "start: Pulled {c}, Created {c}, Started {c}, Pulling {b}, Pulled {b}, Created {b}, Started {b}"}},
		"one image": {with(podOf("started-after", "1s"), second("i")), []string{
			"set-up: Pulling {c}", "start: Pulled {c}, Created {c}, Started {c}, Pulled {b}, Created {b}, Started {b}"}},
		"the second is pulled": {with(with(podOf("started-after", "1s"), policy(corev1.PullNever)), second("j")), []string{
			"set-up: Pulling {b}", "start: Pulled {c}, Created {c}, Started {c}, Pulled {b}, Created {b}, Started {b}"}},
		"init containers": {with(podOf(), inits), []string{
			"set-up: Pulling init{first}, Pulled init{first}, Created init{first}, Started init{first}",
			"initialize: Pulled init{sidecar}, Created init{sidecar}, Started init{sidecar}, Pulled init{second}, Created init{second}, Started init{second}",
			"initialize: Pulling {c}", "start: Pulled {c}, Created {c}, Started {c}"}},
		"sidecar": {with(podOf(), sidecars), []string{
			"start: Pulling init{sidecar}, Pulled init{sidecar}, Created init{sidecar}, Started init{sidecar}, Pulling {c}, Pulled {c}, Created {c}, Started {c}"}},
		"sidecar of a Job": {with(with(podOf(), sidecars), ofJob), []string{
			"start: Pulling init{sidecar}, Pulled init{sidecar}, Created init{sidecar}, Started init{sidecar}, Pulling {c}, Pulled {c}, Created {c}, Started {c}",
			"complete: Killing init{sidecar}"}},
		"image not there":        {podOf("behavior", "image-pull-backoff"), []string{"fail-pull: Pulling {c}, Failed {c}, Failed {c}, BackOff {c}, Failed {c}"}},
		"image not there slowly": {podOf("behavior", "image-pull-backoff", "started-after", "1s"), []string{"set-up: Pulling {c}", "fail-pull: Failed {c}, Failed {c}, BackOff {c}, Failed {c}"}},
		"init crash loop": {with(podOf("behavior", "init-crash-loop"), inits), []string{
			"set-up: Pulling init{first}, Pulled init{first}, Created init{first}, Started init{first}", "crash-init: BackOff init{first}",
			"restart-init: Pulled init{first}, Created init{first}, Started init{first}", "crash-init: BackOff init{first}"}},
		"crashes once":        {with(podOf("behavior", "crash-loop"), neverRestart), []string{run}},
		"unknown behavior":    {podOf("behavior", "odd"), []string{"refuse: Failed {c}"}},
		"deleted before seen": {with(podOf(), deleted(30)), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := said(t, tc.pod, 5); !equal(got, tc.want) {
				t.Errorf("the kubelet said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestEachStartIsReported checks that under every combination of behaviors, a kubelet reports each
// start of a container exactly once, after it has reported how it got the image and that it created
// the container.
func TestEachStartIsReported(t *testing.T) {
	changes := map[string]func(*corev1.Pod){
		"one container": func(*corev1.Pod) {}, "two containers": second("j"), "init containers": inits, "sidecar": sidecars,
		"job": ofJob, "never restarted": neverRestart, "always pulled": policy(corev1.PullAlways), "never pulled": policy(corev1.PullNever),
	}
	for what, change := range changes {
		for _, behavior := range behaviors {
			for _, startedAfter := range []string{"0s", "1s"} {
				pod := with(podOf("behavior", behavior, "started-after", startedAfter), change)
				counts := map[string]map[string]int32{}
				say := func(events []event) {
					for _, e := range events {
						of := counts[e.fieldPath]
						if of == nil {
							of = map[string]int32{}
							counts[e.fieldPath] = of
						}
						of[e.reason]++
						if e.reason == reasonStarted && (of[reasonCreated] != of[reasonStarted] || of[reasonPulled] != of[reasonStarted]) {
							t.Errorf("%s, %s: start %d of %s comes after %v", what, behavior, of[reasonStarted], e.fieldPath, of)
						}
					}
				}
				for range 12 {
					before := pod.DeepCopy()
					play(t, pod, 1)
					say(eventsOf(before, pod, 0))
				}
				for _, c := range containersOf(pod) {
					want := int32(0)
					if status := statusOf(pod, c.Name); status.ContainerID != "" {
						want = status.RestartCount + 1
					}
					if got := counts[c.fieldPath][reasonStarted]; got != want {
						t.Errorf("%s, %s: %d starts of %s are reported, want %d", what, behavior, got, c.fieldPath, want)
					}
				}
			}
		}
	}
}

func TestEventMessages(t *testing.T) {
	last := func(pod *corev1.Pod, steps int, waited time.Duration) []event {
		play(t, pod, steps-1)
		before := pod.DeepCopy()
		play(t, pod, 1)
		return eventsOf(before, pod, waited)
	}
	const c, normal, warning = "spec.containers{c}", corev1.EventTypeNormal, corev1.EventTypeWarning
	tests := map[string]struct{ got, want []event }{
		"pulled": {last(podOf("started-after", "1s"), 3, 1002003*time.Microsecond), []event{
			{c, normal, "Pulled", `Successfully pulled image "i" in 1.002s (1.002s including waiting).`},
			{c, normal, "Created", "Container created"}, {c, normal, "Started", "Container started"}}},
		"pulled at once": {last(podOf(), 2, time.Second), []event{
			{c, normal, "Pulling", `Pulling image "i"`}, {c, normal, "Pulled", `Successfully pulled image "i" in 0s (0s including waiting).`},
			{c, normal, "Created", "Container created"}, {c, normal, "Started", "Container started"}}},
		"restarted": {last(podOf("behavior", "crash-loop"), 4, time.Second), []event{
			{c, normal, "Pulled", `Container image "i" already present on machine and can be accessed by the pod`},
			{c, normal, "Created", "Container created"}, {c, normal, "Started", "Container started"}}},
		"crashed": {last(podOf("behavior", "crash-loop"), 3, time.Second), []event{
			{c, warning, "BackOff", "Back-off restarting failed container c in pod p_default(u)"}}},
		"not pulled": {last(podOf("behavior", "image-pull-backoff"), 2, time.Second), []event{
			{c, normal, "Pulling", `Pulling image "i"`},
			{c, warning, "Failed", `Failed to pull image "i": the annotation sandbox.tidekeeper.dev/behavior says image-pull-backoff`},
			{c, warning, "Failed", "Error: ErrImagePull"},
			{c, normal, "BackOff", `Back-off pulling image "i"`},
			{c, warning, "Failed", "Error: ImagePullBackOff"}}},
		"mistaken": {last(podOf("ready-after", "soon"), 1, 0), []event{
			{c, warning, "Failed", `Error: annotation sandbox.tidekeeper.dev/ready-after: "soon" is not a duration such as 500ms, 10s or 1m30s`}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if !equal(tc.got, tc.want) {
				t.Errorf("got\n%v\nwant\n%v", tc.got, tc.want)
			}
		})
	}
}

// TestKilling checks that a Killing Event is recorded for each running container of a deleted pod.
func TestKilling(t *testing.T) {
	pod := with(podOf(), sidecars)
	if got := killingOf(pod); got != nil {
		t.Errorf("before a container runs: %v", got)
	}
	play(t, pod, 3)
	want := []event{
		{"spec.initContainers{sidecar}", corev1.EventTypeNormal, "Killing", "Stopping container sidecar"},
		{"spec.containers{c}", corev1.EventTypeNormal, "Killing", "Stopping container c"},
	}
	if got := killingOf(pod); !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	deleted(30)(pod)
	before := pod.DeepCopy()
	if steps, _ := play(t, pod, 1); !equal(steps, []step{terminate}) {
		t.Fatalf("the pod did %v", steps)
	}
	// The Killing Events were already recorded when the kubelet noticed the deletion, and must not
	// be repeated.
	if got := append(eventsOf(before, pod, 0), killingOf(pod)...); got != nil {
		t.Errorf("after the end: %v", got)
	}
}
