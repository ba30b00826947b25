// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestApplyChangesNothingItWasGiven(t *testing.T) {
	pod := podOf("behavior", "crash-loop")
	play(t, pod, 2)
	before := pod.DeepCopy()
	apply(pod, crash, "", "", "", false, time.Now())
	if !equalJSON(t, before, pod) {
		t.Error("apply wrote into the pod")
	}
}

func TestReadyPod(t *testing.T) {
	pod := podOf()
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "first"},
		{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
	}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "b"})
	play(t, pod, 9)
	s := pod.Status
	if s.Phase != corev1.PodRunning || s.PodIP != "10.128.0.1" || s.HostIP != "172.16.0.1" {
		t.Errorf("phase %s, pod IP %s, host IP %s", s.Phase, s.PodIP, s.HostIP)
	}
	for _, name := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if !isTrue(pod, name) {
			t.Errorf("condition %s is not true: %v", name, s.Conditions)
		}
	}
	if s.ContainerStatuses[0].Name != "b" || s.ContainerStatuses[1].Name != "c" {
		t.Errorf("containers are not sorted by name: %+v", s.ContainerStatuses)
	}
	if c := s.ContainerStatuses[0]; !c.Ready || !*c.Started || c.State.Running == nil || c.ContainerID == "" {
		t.Errorf("container: %+v", c)
	}
	if c := s.InitContainerStatuses[0]; c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 || !c.Ready {
		t.Errorf("init container: %+v", c)
	}
	if c := s.InitContainerStatuses[1]; c.State.Running == nil || !c.Ready {
		t.Errorf("sidecar: %+v", c)
	}
}

// TestOrderOfAStart checks that a pod's status after each step of its start is the same as with a
// real kubelet.
func TestOrderOfAStart(t *testing.T) {
	type told struct {
		phase                   corev1.PodPhase
		ip                      string
		sandbox, initialized    bool
		inits, containers, said string
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want []told
	}{
		"without init containers": {podOf("started-after", "1s"), []told{
			{corev1.PodPending, "", false, true, "", "ContainerCreating", ""},
			{corev1.PodPending, "10.128.0.1", true, true, "", "ContainerCreating", ""},
			{corev1.PodRunning, "10.128.0.1", true, true, "", "running", ""},
		}},
		"with init containers": {with(podOf(), inits), []told{
			{corev1.PodPending, "", false, false, "PodInitializing/PodInitializing/PodInitializing", "PodInitializing", "containers with incomplete status: [first sidecar second]"},
			{corev1.PodPending, "10.128.0.1", true, false, "running/PodInitializing/PodInitializing", "PodInitializing", "containers with incomplete status: [first sidecar second]"},
			{corev1.PodPending, "10.128.0.1", true, false, "Completed/running/running", "PodInitializing", "containers with incomplete status: [second]"},
			{corev1.PodPending, "10.128.0.1", true, true, "Completed/running/Completed", "PodInitializing", ""},
			{corev1.PodRunning, "10.128.0.1", true, true, "Completed/running/Completed", "running", ""},
		}},
		"with one that crashes": {with(podOf("behavior", "init-crash-loop"), inits), []told{
			{corev1.PodPending, "", false, false, "PodInitializing/PodInitializing/PodInitializing", "PodInitializing", "containers with incomplete status: [first sidecar second]"},
			{corev1.PodPending, "10.128.0.1", true, false, "running/PodInitializing/PodInitializing", "PodInitializing", "containers with incomplete status: [first sidecar second]"},
			{corev1.PodPending, "10.128.0.1", true, false, "CrashLoopBackOff/PodInitializing/PodInitializing", "PodInitializing", "containers with incomplete status: [first sidecar second]"},
			{corev1.PodPending, "10.128.0.1", true, false, "running/PodInitializing/PodInitializing", "PodInitializing", "containers with incomplete status: [first sidecar second]"},
		}},
		"in the network of its node": {with(podOf(), func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }), []told{
			{corev1.PodPending, "172.16.0.1", false, true, "", "ContainerCreating", ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, want := range tc.want {
				play(t, tc.pod, 1)
				s := tc.pod.Status
				got := told{s.Phase, s.PodIP, isTrue(tc.pod, corev1.PodReadyToStartContainers), isTrue(tc.pod, corev1.PodInitialized),
					states(s.InitContainerStatuses), states(s.ContainerStatuses), ""}
				for _, c := range s.Conditions {
					if c.Type == corev1.PodInitialized {
						got.said = c.Message
					}
				}
				if got != want {
					t.Errorf("after step %d: %+v, want %+v", i+1, got, want)
				}
			}
		})
	}
}

func states(list []corev1.ContainerStatus) string {
	var states []string
	for _, c := range list {
		switch {
		case c.State.Waiting != nil:
			states = append(states, c.State.Waiting.Reason)
		case c.State.Running != nil:
			states = append(states, "running")
		case c.State.Terminated != nil:
			states = append(states, c.State.Terminated.Reason)
		}
	}
	return strings.Join(states, "/")
}

// TestNoAddress checks that a pod with host networking gets no IP address on a node without an
// address.
func TestNoAddress(t *testing.T) {
	pod := podOf()
	pod.Spec.HostNetwork = true
	for _, s := range []step{accept, start} {
		if pod.Status = apply(pod, s, "", "", "", true, time.Unix(1, 0)); len(pod.Status.PodIPs)+len(pod.Status.HostIPs) > 0 {
			t.Errorf("after %s its addresses are %v and %v", s, pod.Status.PodIPs, pod.Status.HostIPs)
		}
	}
}

func TestConditionKeepsTimeOfTransition(t *testing.T) {
	pod := podOf()
	pod.Status = apply(pod, accept, "", "", "", true, time.Unix(100, 0))
	pod.Status = apply(pod, start, "", "10.128.0.1", "", true, time.Unix(200, 0))
	pod.Status = apply(pod, start, "", "10.128.0.1", "", true, time.Unix(300, 0))
	for _, c := range pod.Status.Conditions {
		want := metav1.Unix(100, 0)
		if c.Type == corev1.PodReadyToStartContainers {
			want = metav1.Unix(200, 0)
		}
		if !c.LastTransitionTime.Equal(&want) {
			t.Errorf("%s=%s since %s, want %s", c.Type, c.Status, c.LastTransitionTime, want)
		}
	}
}

func TestWaitingReasons(t *testing.T) {
	tests := map[string]struct {
		pod     *corev1.Pod
		steps   int
		reason  string
		message string
	}{
		"new":           {podOf(), 1, "ContainerCreating", ""},
		"misconfigured": {podOf("behavior", "odd"), 1, "CreateContainerConfigError", `"odd" is not one of normal, slow`},
		"bad delay":     {podOf("ready-after", "-1s"), 1, "CreateContainerConfigError", "is not a duration such as"},
		"pull":          {podOf("behavior", "image-pull-backoff"), 2, "ImagePullBackOff", `image "i"`},
		"crash":         {podOf("behavior", "crash-loop"), 5, "CrashLoopBackOff", "back-off 2s restarting"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			play(t, tc.pod, tc.steps)
			w := tc.pod.Status.ContainerStatuses[0].State.Waiting
			if w == nil || w.Reason != tc.reason || !strings.Contains(w.Message, tc.message) {
				t.Errorf("the container waits for %+v, want %s: %s", w, tc.reason, tc.message)
			}
		})
	}
}

func TestCrashedContainerRemembersItsEnd(t *testing.T) {
	pod := podOf("behavior", "crash-loop")
	play(t, pod, 4)
	c := pod.Status.ContainerStatuses[0]
	if c.RestartCount != 1 || c.State.Running == nil || c.LastTerminationState.Terminated == nil || c.LastTerminationState.Terminated.ExitCode != 1 {
		t.Errorf("after a restart: %+v", c)
	}
}

func TestDeletedPodEnds(t *testing.T) {
	for policy, phase := range map[corev1.RestartPolicy]corev1.PodPhase{
		corev1.RestartPolicyAlways: corev1.PodSucceeded,
		corev1.RestartPolicyNever:  corev1.PodFailed,
	} {
		pod := podOf()
		pod.Spec.RestartPolicy = policy
		play(t, pod, 9)
		play(t, with(pod, deleted(30)), 1)
		if pod.Status.Phase != phase || isTrue(pod, corev1.PodReady) || pod.Status.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("%s: phase %s, conditions %v", policy, pod.Status.Phase, pod.Status.Conditions)
		}
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}
