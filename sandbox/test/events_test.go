// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// alone creates a pod without an owner, which is deleted at the end of the test.
func alone(t *testing.T, client kubernetes.Interface, name string, annotations map[string]string, spec corev1.PodSpec) {
	t.Helper()
	_, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}, Annotations: annotations},
		Spec:       spec,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
}

// saidOf returns the Events that kubelets recorded about the named pod, in chronological order.
func saidOf(t *testing.T, client kubernetes.Interface, pod string) []corev1.Event {
	t.Helper()
	list, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,involvedObject.name=" + pod + ",source=kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	// An Event's name ends with its timestamp in nanoseconds.
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// waitSaid waits until kubelets have recorded exactly the given Events about a pod. Each expected
// Event is a line with the container, the reason and the message, in which all durations are 0s.
func waitSaid(t *testing.T, client kubernetes.Interface, pod string, want ...string) []corev1.Event {
	t.Helper()
	var events []corev1.Event
	waitFor(t, 30*time.Second, func() string {
		events = saidOf(t, client, pod)
		var got []string
		for _, e := range events {
			message := regexp.MustCompile(`\b[\d.]+m?s\b`).ReplaceAllString(e.Message, "0s")
			got = append(got, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(e.InvolvedObject.FieldPath, "spec."), e.Reason, message))
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("the kubelet said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return ""
	})
	return events
}

// startOf returns the expected Events of a container's start with the image i. This image is pulled
// at each start because it has no tag.
func startOf(container string) []string {
	return []string{container + ` Pulling: Pulling image "i"`, container + ` Pulled: Successfully pulled image "i" in 0s (0s including waiting).`,
		container + " Created: Container created", container + " Started: Container started"}
}

// TestEventsOfALife checks that a pod's Events have the same order and wording as a real kubelet's.
func TestEventsOfALife(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	client := s.client(t)
	annotations := map[string]string{prefix + "started-after": "2s", prefix + "terminated-after": "5s"}
	alone(t, client, "life", annotations, corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Image: "i"}, {Name: "side", Image: "i", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
		Containers:     []corev1.Container{{Name: "c", Image: "i"}},
	})
	want := slices.Concat(startOf("initContainers{init}"), startOf("initContainers{side}"), startOf("containers{c}"))
	events := waitSaid(t, client, "life", want...)
	pod := waitPods(t, client, "life", 1, ready)[0]
	for _, e := range events {
		ref, source := e.InvolvedObject, corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName}
		if ref.UID != pod.UID || ref.APIVersion != "v1" || e.Source != source || e.ReportingController != "kubelet" || e.ReportingInstance != pod.Spec.NodeName {
			t.Errorf("event %+v of a pod with the UID %s on %s", e, pod.UID, pod.Spec.NodeName)
		}
	}
	// Only the pull of the main container's image takes time; the images of init containers are
	// pulled without delay.
	if pulled := events[len(events)-3].Message; !regexp.MustCompile(` in ([2-9]|\d\d+|\d+m\d+)(\.\d+)?s \(`).MatchString(pulled) {
		t.Errorf("after 2 s: %s", pulled)
	}

	alone(t, client, "plain-life", nil, corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}})
	waitSaid(t, client, "plain-life", startOf("containers{c}")...)
	order := regexp.MustCompile(`(?s)Events:.*Normal +Scheduled .*Normal +Pulling .*Normal +Pulled .*Normal +Created .*Normal +Started +\S+ +kubelet +spec\.containers\{c\}: Container started`)
	// The scheduler's Event may be written after the kubelet's Events.
	waitFor(t, 30*time.Second, func() string {
		if text := s.must(t, "kubectl", "describe", "pod", "plain-life"); !order.MatchString(text) {
			return "kubectl describe says\n" + text
		}
		return ""
	})

	// Kubelets record the Killing Events before the containers stop, even for a pod that is deleted
	// with a grace period of 0.
	for name, grace := range map[string]int64{"life": 30, "plain-life": 0} {
		if err := client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
	}
	waitSaid(t, client, "plain-life", append(startOf("containers{c}"), "containers{c} Killing: Stopping container c")...)
	want = append(want, "initContainers{side} Killing: Stopping container side", "containers{c} Killing: Stopping container c")
	events = waitSaid(t, client, "life", want...)
	waitPods(t, client, "life", 0, ready)
	if again := saidOf(t, client, "life"); len(again) != len(events) {
		t.Errorf("after its end, there are %d events: %+v", len(again), again)
	}
}

// TestEventsOfFailures checks that kubelets record Events about pod failures.
func TestEventsOfFailures(t *testing.T) {
	t.Parallel()
	client := sharedSandbox(t).client(t)
	alone(t, client, "said-pull", map[string]string{prefix + "behavior": "image-pull-backoff"},
		corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}})
	waitSaid(t, client, "said-pull", `containers{c} Pulling: Pulling image "i"`,
		`containers{c} Failed: Failed to pull image "i": the annotation sandbox.tidekeeper.dev/behavior says image-pull-backoff`,
		"containers{c} Failed: Error: ErrImagePull", `containers{c} BackOff: Back-off pulling image "i"`, "containers{c} Failed: Error: ImagePullBackOff")

	// Repeated Events are counted, so the sum of their counts is the number of starts.
	alone(t, client, "said-crash", map[string]string{prefix + "behavior": "crash-loop"},
		corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1"}}})
	waitFor(t, 60*time.Second, func() string {
		got := map[string]int32{}
		for _, e := range saidOf(t, client, "said-crash") {
			got[e.Reason+": "+e.Message] += e.Count
			if (e.Type == corev1.EventTypeWarning) != (e.Reason == "BackOff") {
				t.Errorf("%s is %s", e.Reason, e.Type)
			}
		}
		pod := pods(t, client, "said-crash")[0]
		if !waitingFor("CrashLoopBackOff")(&pod) || pod.Status.ContainerStatuses[0].RestartCount < 2 {
			return fmt.Sprintf("its status is %+v", pod.Status)
		}
		restarts := pod.Status.ContainerStatuses[0].RestartCount
		want := map[string]int32{
			`Pulling: Pulling image "i:1"`: 1, `Pulled: Successfully pulled image "i:1" in 0s (0s including waiting).`: 1,
			`Pulled: Container image "i:1" already present on machine and can be accessed by the pod`: restarts,
			"Created: Container created": restarts + 1, "Started: Container started": restarts + 1,
			fmt.Sprintf("BackOff: Back-off restarting failed container c in pod said-crash_default(%s)", pod.UID): restarts + 1,
		}
		if !maps.Equal(got, want) {
			return fmt.Sprintf("the kubelet said %v, want %v", got, want)
		}
		return ""
	})
}

// TestWithoutPodEvents checks that kubelets record no Events during a pod's entire life if
// --pod-events=false is set.
func TestWithoutPodEvents(t *testing.T) {
	t.Parallel()
	s := start(t, "--nodes=1", "--pod-events=false")
	client := s.client(t)
	alone(t, client, "quiet", nil, corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}})
	alone(t, client, "quiet-crash", map[string]string{prefix + "behavior": "crash-loop"}, corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}})
	waitPods(t, client, "quiet", 1, ready)
	waitPods(t, client, "quiet-crash", 1, func(pod *corev1.Pod) bool {
		return waitingFor("CrashLoopBackOff")(pod) && pod.Status.ContainerStatuses[0].RestartCount > 0
	})
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "quiet", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitPods(t, client, "quiet", 0, ready)
	waitFor(t, 30*time.Second, func() string {
		if text := s.must(t, "kubectl", "get", "events", "-A"); !strings.Contains(text, "Scheduled") {
			return "there are no events of the scheduler:\n" + text
		}
		return ""
	})
	for _, pod := range []string{"quiet", "quiet-crash"} {
		if events := saidOf(t, client, pod); len(events) > 0 {
			t.Errorf("kubelets said %+v", events)
		}
	}
}
