// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// event is an Event that a kubelet records about a container.
type event struct {
	// fieldPath is the container's path in the pod, such as spec.containers{app}.
	fieldPath string
	// kind is the Event type, Normal or Warning.
	kind            string
	reason, message string
}

// Reasons in a kubelet's Events.
const (
	reasonPulling = "Pulling"
	reasonPulled  = "Pulled"
	reasonCreated = "Created"
	reasonStarted = "Started"
	reasonFailed  = "Failed"
	reasonBackOff = "BackOff"
	reasonKilling = "Killing"
)

// Reasons in the waiting state of a container after an error.
const (
	crashLoopBackOff = "CrashLoopBackOff"
	configError      = "CreateContainerConfigError"
)

// errPull is the error message for an image that cannot be pulled. For a real kubelet, this message
// comes from the container runtime.
const errPull = "the annotation " + BehaviorAnnotation + " says " + ImagePullBackOff

// eventsOf returns the Events that a kubelet records for a step of a pod, in order. It compares the
// pod's status before and after the step. The parameter "waited" is the time for which the pod
// waited for the step. The function has no side effects.
func eventsOf(before, after *corev1.Pod, waited time.Duration) []event {
	j := journal{waited: waited, pulling: pulls(before), present: presentIn(before)}
	next := pulls(after)
	for _, c := range containersOf(after) {
		was, is := statusOf(before, c.Name), statusOf(after, c.Name)
		switch {
		case runs(is) && (!runs(was) || was.RestartCount != is.RestartCount):
			j.start(c)
		case c.Name == next && c.Name != j.pulling:
			j.pull(c)
		case beginsToWait(was, is, imagePullBackOff):
			j.failPull(c)
		case beginsToWait(was, is, configError):
			j.say(c, corev1.EventTypeWarning, reasonFailed, "Error: %s", is.State.Waiting.Message)
		case beginsToWait(was, is, crashLoopBackOff):
			j.say(c, corev1.EventTypeWarning, reasonBackOff, "Back-off restarting failed container %s in pod %s_%s(%s)", c.Name, after.Name, after.Namespace, after.UID)
		case c.sidecar && runs(was) && !runs(is) && after.DeletionTimestamp == nil:
			// A real kubelet records a Killing Event for a sidecar, too, when it stops the sidecar
			// after the main containers have terminated.
			j.kill(c)
		}
	}
	return j.events
}

// killingOf returns the Killing Events for the running containers of a deleted pod. A kubelet
// records them before it stops the containers.
func killingOf(pod *corev1.Pod) []event {
	var j journal
	for _, c := range containersOf(pod) {
		if runs(statusOf(pod, c.Name)) {
			j.kill(c)
		}
	}
	return j.events
}

// journal collects the Events for a single step of a pod.
type journal struct {
	waited time.Duration
	// pulling is the name of the container whose image an earlier step began to pull, or "" if
	// there is none.
	pulling string
	// present is the set of the names of the images that are already on the node.
	present map[string]bool
	events  []event
}

func (j *journal) say(c container, kind, reason, format string, args ...any) {
	j.events = append(j.events, event{fieldPath: c.fieldPath, kind: kind, reason: reason, message: fmt.Sprintf(format, args...)})
}

func (j *journal) pull(c container) {
	j.say(c, corev1.EventTypeNormal, reasonPulling, "Pulling image %q", c.Image)
}

// start adds the Events for the start of a container. They report whether its image was pulled or
// already present. Unlike a real kubelet's, they do not contain the size of a pulled image.
func (j *journal) start(c container) {
	switch {
	case j.pulling == c.Name:
		took := j.waited.Truncate(time.Millisecond)
		j.say(c, corev1.EventTypeNormal, reasonPulled, "Successfully pulled image %q in %v (%v including waiting).", c.Image, took, took)
	case needsPull(c.Container, j.present):
		j.pull(c)
		j.say(c, corev1.EventTypeNormal, reasonPulled, "Successfully pulled image %q in 0s (0s including waiting).", c.Image)
	default:
		j.say(c, corev1.EventTypeNormal, reasonPulled, "Container image %q already present on machine and can be accessed by the pod", c.Image)
	}
	j.present[c.Image] = true
	j.say(c, corev1.EventTypeNormal, reasonCreated, "Container created")
	j.say(c, corev1.EventTypeNormal, reasonStarted, "Container started")
}

func (j *journal) failPull(c container) {
	if j.pulling != c.Name {
		j.pull(c)
	}
	j.say(c, corev1.EventTypeWarning, reasonFailed, "Failed to pull image %q: %s", c.Image, errPull)
	j.say(c, corev1.EventTypeWarning, reasonFailed, "Error: ErrImagePull")
	j.say(c, corev1.EventTypeNormal, reasonBackOff, "Back-off pulling image %q", c.Image)
	j.say(c, corev1.EventTypeWarning, reasonFailed, "Error: %s", imagePullBackOff)
}

func (j *journal) kill(c container) {
	j.say(c, corev1.EventTypeNormal, reasonKilling, "Stopping container %s", c.Name)
}

// container is a main container, init container or sidecar of a pod. fieldPath is the container's
// path in the pod, such as spec.containers{app}. sidecar is set for an init container that keeps
// running.
type container struct {
	corev1.Container
	fieldPath string
	sidecar   bool
}

// containersOf returns a pod's containers in the order in which they start.
func containersOf(pod *corev1.Pod) []container {
	var list []container
	for _, c := range pod.Spec.InitContainers {
		list = append(list, container{c, fmt.Sprintf("spec.initContainers{%s}", c.Name), sidecar(c)})
	}
	for _, c := range pod.Spec.Containers {
		list = append(list, container{c, fmt.Sprintf("spec.containers{%s}", c.Name), false})
	}
	return list
}

// statusOf returns the status of the container with the given name. Container names are unique
// among a pod's main containers, init containers and sidecars.
func statusOf(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			if c.Name == name {
				return c
			}
		}
	}
	return corev1.ContainerStatus{}
}

func runs(c corev1.ContainerStatus) bool { return c.State.Running != nil }

func beginsToWait(was, is corev1.ContainerStatus, reason string) bool {
	waits := func(c corev1.ContainerStatus) bool { return c.State.Waiting != nil && c.State.Waiting.Reason == reason }
	return waits(is) && !waits(was)
}

// pulls returns the name of the container whose image is being pulled before the main containers
// start, or "" if there is none. It is never an init container, because pulling the image of an
// init container takes no time.
func pulls(pod *corev1.Pod) string {
	if pod.Status.Phase != corev1.PodPending || !isTrue(pod, corev1.PodReadyToStartContainers) || !isTrue(pod, corev1.PodInitialized) ||
		waitsFor(pod, imagePullBackOff) {
		return ""
	}
	present := presentIn(pod)
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return needsPull(c, present) })
	if i < 0 {
		return ""
	}
	return pod.Spec.Containers[i].Name
}

// presentIn returns the set of images that must already be on the pod's node, because the pod has
// run containers with them.
func presentIn(pod *corev1.Pod) map[string]bool {
	present := map[string]bool{}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.ImageID != "" {
			present[c.Image] = true
		}
	}
	return present
}

func needsPull(c corev1.Container, present map[string]bool) bool {
	switch c.ImagePullPolicy {
	case corev1.PullAlways:
		return true
	case corev1.PullNever:
		return false
	}
	return !present[c.Image]
}
