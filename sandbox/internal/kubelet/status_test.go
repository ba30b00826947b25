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

func TestConditionKeepsTimeOfTransition(t *testing.T) {
	pod := podOf()
	pod.Status = apply(pod, accept, "", "", "", true, time.Unix(100, 0))
	pod.Status = apply(pod, initialize, "", "10.128.0.1", "", true, time.Unix(200, 0))
	pod.Status = apply(pod, initialize, "", "10.128.0.1", "", true, time.Unix(300, 0))
	for _, c := range pod.Status.Conditions {
		want := metav1.Unix(100, 0)
		if c.Status == corev1.ConditionTrue {
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
