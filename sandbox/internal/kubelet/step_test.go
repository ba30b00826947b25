// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podOf returns a pod that is bound to a node. The annotations alternate between names without the
// prefix and values.
func podOf(annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u", Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName:      "n",
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[Prefix+annotations[i]] = annotations[i+1]
	}
	return pod
}

func with(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

func neverRestart(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }

func ofJob(pod *corev1.Pod) {
	neverRestart(pod)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j"}}
}

func gated(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
}

func openGate(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "gate", Status: corev1.ConditionTrue})
}

// inits adds two init containers and, between them, a sidecar to a pod.
func inits(pod *corev1.Pod) {
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "first"}, {Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}, {Name: "second"},
	}
}

func sidecars(pod *corev1.Pod) {
	pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
}

func deleted(grace int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		pod.DeletionGracePeriodSeconds = &grace
	}
}

// play takes a pod through up to "most" steps. It returns the steps and the delay before each step.
func play(t *testing.T, pod *corev1.Pod, most int) ([]step, []time.Duration) {
	t.Helper()
	var steps []step
	var delays []time.Duration
	for range most {
		p, mistake := planOf(pod, DefaultDelays())
		s, delay := next(pod, p, mistake)
		if s == none {
			break
		}
		steps, delays = append(steps, s), append(delays, delay)
		if s == remove {
			break
		}
		message := ""
		if mistake != nil {
			message = mistake.Error()
		}
		pod.Status = apply(pod, s, "172.16.0.1", "10.128.0.1", message, p.delays.Ready == 0 && gatesOpen(pod), time.Unix(100, 0))
	}
	return steps, delays
}

func TestLives(t *testing.T) {
	up := []step{accept, start, containersReady}
	tests := map[string]struct {
		pod  *corev1.Pod
		want []step
	}{
		"normal":              {podOf(), up},
		"told to be normal":   {podOf("behavior", "normal"), up},
		"slow":                {podOf("behavior", "slow"), up},
		"never ready":         {podOf("behavior", "never-ready"), up[:2]},
		"image never pulled":  {podOf("behavior", "image-pull-backoff"), []step{accept, failPull}},
		"crash loop":          {podOf("behavior", "crash-loop"), []step{accept, start, crash, restart, crash, restart}},
		"crashes once":        {with(podOf("behavior", "crash-loop"), neverRestart), []step{accept, start, fail}},
		"unknown behavior":    {podOf("behavior", "odd"), []step{refuse}},
		"delay is no number":  {podOf("ready-after", "soon"), []step{refuse}},
		"ready later":         {podOf("ready-after", "1s"), []step{accept, start, containersReady, ready}},
		"of a Job":            {with(podOf(), ofJob), []step{accept, start, containersReady, complete}},
		"told when to end":    {with(podOf("completed-after", "1s"), neverRestart), []step{accept, start, containersReady, complete}},
		"gate closed":         {with(podOf(), gated), up},
		"gate open":           {with(with(podOf(), gated), openGate), up},
		"not of a Job":        {with(podOf(), neverRestart), up},
		"slow images":         {podOf("started-after", "1s"), []step{accept, setUp, start, containersReady}},
		"never pulled slowly": {podOf("started-after", "1s", "behavior", "image-pull-backoff"), []step{accept, setUp, failPull}},
		"init containers":     {with(podOf(), inits), []step{accept, setUp, initialize, initialize, start, containersReady}},
		"only a sidecar":      {with(podOf(), sidecars), up},
		"init crash loop":     {with(podOf("behavior", "init-crash-loop"), inits), []step{accept, setUp, crashInit, restartInit, crashInit, restartInit}},
		"init crashes once":   {with(with(podOf("behavior", "init-crash-loop"), inits), neverRestart), []step{accept, setUp, failInit}},
		"nothing to crash":    {podOf("behavior", "init-crash-loop"), []step{refuse}},
		"deleted before seen": {with(podOf(), deleted(30)), []step{terminate, remove}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := play(t, tc.pod, 6)
			if !equal(got, tc.want) {
				t.Errorf("the pod did %v, want %v", got, tc.want)
			}
		})
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestDelays(t *testing.T) {
	d := DefaultDelays()
	tests := map[string]struct {
		pod  *corev1.Pod
		want []time.Duration
	}{
		"defaults":                {podOf(), []time.Duration{0, d.Initialized, d.ContainersReady}},
		"slow":                    {podOf("behavior", "slow"), []time.Duration{0, d.Initialized, d.Slow}},
		"slow, but not that slow": {podOf("behavior", "slow", "containers-ready-after", "3s"), []time.Duration{0, d.Initialized, 3 * time.Second}},
		"slow by annotation":      {podOf("behavior", "slow", "slow-after", "3s"), []time.Duration{0, d.Initialized, 3 * time.Second}},
		"each set":                {podOf("initialized-after", "1s", "containers-ready-after", "2s", "ready-after", "3s"), []time.Duration{0, 1e9, 2e9, 3e9}},
		"slow images":             {podOf("initialized-after", "1s", "started-after", "2s", "containers-ready-after", "3s"), []time.Duration{0, 1e9, 2e9, 3e9}},
		"init containers":         {with(podOf("initialized-after", "4s", "started-after", "5s"), inits), []time.Duration{0, 0, 2e9, 2e9, 5e9, d.ContainersReady}},
		"back-off doubles":        {podOf("behavior", "crash-loop", "crash-after", "7s"), []time.Duration{0, d.Initialized, 7e9, 1e9, 7e9, 2e9, 7e9, 4e9}},
		"deleted":                 {with(podOf("terminated-after", "9s"), deleted(30)), []time.Duration{9e9, 0}},
		"deleted with less grace": {with(podOf("terminated-after", "9s"), deleted(2)), []time.Duration{2e9, 0}},
		"deleted without grace":   {with(podOf("terminated-after", "9s"), deleted(0)), []time.Duration{0, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := play(t, tc.pod, len(tc.want))
			if !equal(got, tc.want) {
				t.Errorf("the pod waited %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBackoffIsLimited(t *testing.T) {
	for _, restarts := range []int32{5, 16, 17, 1 << 30} {
		if got := backoffOf(restarts); got != maxBackoff {
			t.Errorf("after %d restarts the back-off is %s, want %s", restarts, got, maxBackoff)
		}
	}
}

func TestGates(t *testing.T) {
	pod := with(podOf(), gated)
	play(t, pod, 9)
	if !isTrue(pod, corev1.ContainersReady) || isTrue(pod, corev1.PodReady) {
		t.Fatalf("with a closed gate: %v", pod.Status.Conditions)
	}
	openGate(pod)
	if got, _ := play(t, pod, 9); !equal(got, []step{ready}) {
		t.Fatalf("after the gate was opened the pod did %v", got)
	}
	pod.Status.Conditions[len(pod.Status.Conditions)-1].Status = corev1.ConditionFalse
	if got, _ := play(t, pod, 9); !equal(got, []step{unready}) {
		t.Fatalf("after the gate was closed again the pod did %v", got)
	}
}

func TestFinalizerKeepsRemovedPod(t *testing.T) {
	pod := with(podOf(), deleted(0))
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	if got, _ := play(t, pod, 9); !equal(got, []step{terminate}) {
		t.Errorf("the pod did %v, want to be left to its finalizer", got)
	}
}

func TestPodMarkedUnreadyByOthersIsReportedReadyAgain(t *testing.T) {
	pod := podOf()
	play(t, pod, 9)
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	if got, _ := play(t, pod, 9); !equal(got, []step{ready}) {
		t.Errorf("the pod did %v, want %v", got, ready)
	}
}
