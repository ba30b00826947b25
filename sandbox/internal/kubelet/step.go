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

// step is the next thing that happens to a pod.
type step string

// The steps in the life of a pod. The comment of each has the event that a real kubelet reports in
// this way.
const (
	// none: nothing happens until a client changes the pod.
	none step = ""
	// accept: the pod was bound to the node.
	accept step = "accept"
	// refuse: the annotations of the pod make no sense.
	refuse step = "refuse"
	// setUp: the pod has its sandbox, and with it its address.
	setUp step = "set-up"
	// initialize: an init container has done its work.
	initialize step = "initialize"
	// crashInit: an init container ended with an error and will be started again.
	crashInit step = "crash-init"
	// restartInit: the back-off of a crashed init container is over.
	restartInit step = "restart-init"
	// failInit: an init container ended with an error and stays ended.
	failInit step = "fail-init"
	// start: the images are there, the containers run.
	start step = "start"
	// failPull: the image cannot be pulled.
	failPull step = "fail-pull"
	// containersReady: the readiness probes of all containers succeed.
	containersReady step = "containers-ready"
	// ready: the readiness gates are open as well.
	ready step = "ready"
	// unready: a readiness gate was closed again.
	unready step = "unready"
	// crash: the containers ended with an error and will be started again.
	crash step = "crash"
	// restart: the back-off of crashed containers is over.
	restart step = "restart"
	// fail: the containers ended with an error and stay ended.
	fail step = "fail"
	// complete: the containers have done their work.
	complete step = "complete"
	// terminate: the containers of a deleted pod have ended.
	terminate step = "terminate"
	// remove: nothing is left of a deleted pod but the object.
	remove step = "remove"
)

// The back-off of crashing containers: a tenth of a kubelet's, so that a test
// sees several restarts.
const (
	backoff    = time.Second
	maxBackoff = 30 * time.Second
)

// next decides the next step of a pod that is bound to a live node, and its delay after the step
// before. It has no side effects.
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
	// A pod that works for a while and is then done does so even if its gates
	// stay closed: they are for other clients, not for the containers.
	case completes(pod) && (isTrue(pod, corev1.PodReady) || !gatesOpen(pod)):
		return complete, p.delays.Completed
	case !isTrue(pod, corev1.PodReady) && gatesOpen(pod):
		return ready, p.delays.Ready
	}
	return none, 0
}

// nextOfPending is next of a pod that was accepted and whose containers do not
// run: it gets a sandbox, then come the init containers one by one, and then the
// images.
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
		// Steps without a delay are reported at once.
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

// initContainers returns the init containers that end before the containers start, which sidecars
// do not.
func initContainers(pod *corev1.Pod) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), sidecar)
}

func sidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// current returns the place of the init container that must end before the pod
// goes on, -1 if there is none.
func current(pod *corev1.Pod) int {
	for i, c := range pod.Spec.InitContainers {
		if !sidecar(c) && i < len(pod.Status.InitContainerStatuses) && !done(pod.Status.InitContainerStatuses[i]) {
			return i
		}
	}
	return -1
}

// done reports whether an init container has done its work.
func done(c corev1.ContainerStatus) bool {
	return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
}

// turn identifies the step that a pod waits for. Some steps come several times in succession, each
// for another container.
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
		// After the grace period, a kubelet kills containers that still run.
		return terminate, min(p.delays.Terminated, grace)
	case grace == 0 && len(pod.Finalizers) > 0:
		// It was removed already; who has a finalizer on it must let it go.
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

// completes reports whether the containers of a pod end on their own: in the pods of a Job, and in
// pods with the annotation completed-after.
func completes(pod *corev1.Pod) bool {
	_, told := pod.Annotations[Prefix+"completed-after"]
	ofJob := slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" })
	return pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && (told || ofJob)
}
