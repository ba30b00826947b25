// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is the name of a step in a pod's life, such as the start of its containers.
type step string

// Steps in a pod's life. Each comment describes the event in a real pod's life that the step
// simulates.
const (
	// none means that nothing happens until a client changes the pod.
	none step = ""
	// accept is the step in which the kubelet accepts a pod that was bound to its node.
	accept step = "accept"
	// refuse is the step in which the kubelet rejects a pod with invalid annotations.
	refuse step = "refuse"
	// setUp is the step in which the pod gets its pod sandbox (the environment of its containers)
	// and its IP address.
	setUp step = "set-up"
	// initialize is the step in which an init container completes.
	initialize step = "initialize"
	// crashInit is the step in which an init container fails and will be restarted.
	crashInit step = "crash-init"
	// restartInit is the step in which the back-off of a crashed init container ends and the
	// container restarts.
	restartInit step = "restart-init"
	// failInit is the step in which an init container fails and will not be restarted.
	failInit step = "fail-init"
	// start is the step in which the images have been pulled and the containers start.
	start step = "start"
	// failPull is the step in which an image cannot be pulled.
	failPull step = "fail-pull"
	// containersReady is the step in which the readiness probes of all containers succeed.
	containersReady step = "containers-ready"
	// ready is the step in which the pod becomes ready, because its containers are ready and its
	// readiness gates are true.
	ready step = "ready"
	// unready is the step in which the pod stops being ready, because a readiness gate has become
	// false.
	unready step = "unready"
	// crash is the step in which containers fail and will be restarted.
	crash step = "crash"
	// restart is the step in which the back-off of crashed containers ends and the containers
	// restart.
	restart step = "restart"
	// fail is the step in which containers fail and will not be restarted.
	fail step = "fail"
	// complete is the step in which the containers exit successfully.
	complete step = "complete"
	// terminate is the step in which the containers of a deleted pod terminate.
	terminate step = "terminate"
	// remove is the step in which the Pod object of a terminated pod is deleted.
	remove step = "remove"
)

// Back-off delays before the restarts of crashing containers: the first delay, which doubles with
// each restart, and the maximum. They are a tenth of a real kubelet's, so that a test can observe
// several restarts.
const (
	backoff    = time.Second
	maxBackoff = 30 * time.Second
)

// next returns the next step of a pod whose node has a live kubelet, and the time for which the pod
// waits for that step. The error "mistake" is nil unless the pod has invalid annotations. The
// function has no side effects.
func next(pod *corev1.Pod, p plan, mistake error) (step, time.Duration) {
	switch {
	case pod.DeletionTimestamp != nil:
		return nextOfDeleted(pod, p)
	case terminal(pod):
		return none, 0
	case pod.Status.StartTime == nil && mistake != nil:
		return refuse, 0
	case pod.Status.StartTime == nil:
		return accept, 0
	case mistake != nil:
		return none, 0
	case pod.Status.Phase != corev1.PodRunning:
		return nextOfPending(pod, p)
	case p.behavior == CrashLoop:
		return nextOfCrashing(pod, p)
	case p.behavior == NeverReady:
		return none, 0
	case !isTrue(pod, corev1.ContainersReady):
		return containersReady, p.delays.ContainersReady
	case isTrue(pod, corev1.PodReady) && !gatesOpen(pod):
		return unready, 0
	// A pod completes even if its readiness gates stay false, because readiness gates do not affect
	// its containers.
	case completes(pod) && (isTrue(pod, corev1.PodReady) || !gatesOpen(pod)):
		return complete, p.delays.Completed
	case !isTrue(pod, corev1.PodReady) && gatesOpen(pod):
		return ready, p.delays.Ready
	}
	return none, 0
}

// nextOfPending returns the next step of a pod that was accepted and whose main containers are not
// yet running. First, the pod sandbox is created. Then the init containers run in sequence, and the
// images are pulled.
func nextOfPending(pod *corev1.Pod, p plan) (step, time.Duration) {
	last, inits := start, initContainers(pod)
	if p.behavior == ImagePullBackOff {
		last = failPull
	}
	i := current(pod)
	switch {
	case !isTrue(pod, corev1.PodReadyToStartContainers) && len(inits) > 0:
		return setUp, 0
	case !isTrue(pod, corev1.PodReadyToStartContainers) && p.delays.Started > 0:
		return setUp, p.delays.Initialized
	case !isTrue(pod, corev1.PodReadyToStartContainers):
		// Without init containers and without a start delay, the pod sandbox is created and the
		// containers start in a single step.
		return last, p.delays.Initialized
	case i >= 0 && p.behavior == InitCrashLoop:
		return nextOfCrashingInit(pod, pod.Status.InitContainerStatuses[i], p)
	case i >= 0:
		return initialize, p.delays.Initialized / time.Duration(len(inits))
	case waitsFor(pod, imagePullBackOff):
		return none, 0
	}
	return last, p.delays.Started
}

func nextOfCrashingInit(pod *corev1.Pod, c corev1.ContainerStatus, p plan) (step, time.Duration) {
	switch {
	case c.State.Waiting != nil:
		return restartInit, backoffOf(c.RestartCount)
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return failInit, p.delays.Crash
	}
	return crashInit, p.delays.Crash
}

// initContainers returns a pod's init containers without its sidecars, which are still running when
// the main containers start.
func initContainers(pod *corev1.Pod) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), sidecar)
}

func sidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// current returns the index of the first init container that has not completed, or -1 if there is
// none. It skips sidecars.
func current(pod *corev1.Pod) int {
	for i, c := range pod.Spec.InitContainers {
		if !sidecar(c) && i < len(pod.Status.InitContainerStatuses) && !done(pod.Status.InitContainerStatuses[i]) {
			return i
		}
	}
	return -1
}

// done reports whether an init container has completed successfully.
func done(c corev1.ContainerStatus) bool {
	return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
}

// turn returns an identifier of the step for which a pod waits: the name of the step. For the step
// initialize, which is repeated for each init container, the index of the container follows.
func turn(pod *corev1.Pod, s step) string {
	if s == initialize {
		return fmt.Sprint(s, " ", current(pod))
	}
	return string(s)
}

func waitsFor(pod *corev1.Pod, reason string) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == reason
	})
}

func nextOfDeleted(pod *corev1.Pod, p plan) (step, time.Duration) {
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	switch {
	case !terminal(pod):
		// A kubelet kills the containers that are still running at the end of the grace period.
		return terminate, min(p.delays.Terminated, grace)
	case grace == 0 && len(pod.Finalizers) > 0:
		// The pod has already terminated, but finalizers keep the object.
		return none, 0
	}
	return remove, 0
}

func nextOfCrashing(pod *corev1.Pod, p plan) (step, time.Duration) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return none, 0
	}
	c := pod.Status.ContainerStatuses[0]
	switch {
	case c.State.Waiting != nil:
		return restart, backoffOf(c.RestartCount)
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return fail, p.delays.Crash
	}
	return crash, p.delays.Crash
}

func backoffOf(restarts int32) time.Duration {
	return min(backoff<<min(restarts, 16), maxBackoff)
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isTrue(pod *corev1.Pod, name corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == name && c.Status == corev1.ConditionTrue
	})
}

func gatesOpen(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return !isTrue(pod, g.ConditionType)
	})
}

// completes reports whether a pod's containers exit by themselves. This applies to pods of a Job
// and to pods with the annotation "completed-after", unless their restart policy is Always.
func completes(pod *corev1.Pod) bool {
	_, told := pod.Annotations[Prefix+"completed-after"]
	ofJob := slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" })
	return pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && (told || ofJob)
}
