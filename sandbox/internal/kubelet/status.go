// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// imagePullBackOff is the reason for which a container waits if its image cannot be pulled.
const imagePullBackOff = "ImagePullBackOff"

// apply returns a pod's status after a step. The parameter "mistake" describes invalid annotations,
// or is empty. The pod becomes ready together with its containers if readyAtOnce is set. The
// function has no side effects.
func apply(pod *corev1.Pod, s step, hostIP, podIP, mistake string, readyAtOnce bool, now time.Time) corev1.PodStatus {
	r := report{PodStatus: *pod.Status.DeepCopy(), pod: pod, now: metav1.NewTime(now)}
	switch s {
	case accept, refuse:
		r.Phase = corev1.PodPending
		r.StartTime = &r.now
		if hostIP != "" {
			r.HostIP, r.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
		}
		reason := "ContainerCreating"
		switch {
		case s == refuse:
			reason = configError
		case len(pod.Spec.InitContainers) > 0:
			reason = "PodInitializing"
		}
		r.condition(corev1.PodReadyToStartContainers, false, "")
		if len(pod.Spec.InitContainers) == 0 {
			r.condition(corev1.PodInitialized, true, "")
		} else {
			r.condition(corev1.PodInitialized, false, "ContainersNotInitialized")
		}
		r.condition(corev1.ContainersReady, false, "ContainersNotReady")
		r.condition(corev1.PodReady, false, "ContainersNotReady")
		r.initContainers(func(c *corev1.ContainerStatus) { wait(c, "PodInitializing", "") })
		r.containers(func(c *corev1.ContainerStatus) { wait(c, reason, mistake) })
		if pod.Spec.HostNetwork {
			r.address(hostIP)
		}
	case setUp:
		r.setUp(podIP)
	case initialize:
		r.initContainer(current(pod), func(c *corev1.ContainerStatus) { r.end(c, 0); c.Ready = true })
		r.nextInitContainer()
	case crashInit:
		r.initContainer(current(pod), func(c *corev1.ContainerStatus) { r.backOff(c) })
	case restartInit:
		r.initContainer(current(pod), func(c *corev1.ContainerStatus) { c.RestartCount++; r.start(c) })
	case failInit:
		r.initContainer(current(pod), func(c *corev1.ContainerStatus) { r.end(c, 1) })
		r.finish(corev1.PodFailed, 1)
	case start:
		r.setUp(podIP)
		r.Phase = corev1.PodRunning
		r.containers(r.start)
	case failPull:
		r.setUp(podIP)
		r.containers(func(c *corev1.ContainerStatus) {
			wait(c, imagePullBackOff, fmt.Sprintf("Back-off pulling image %q", c.Image))
		})
	case containersReady:
		r.containers(func(c *corev1.ContainerStatus) { r.start(c); c.Ready = true })
		r.condition(corev1.ContainersReady, true, "")
		if readyAtOnce {
			r.condition(corev1.PodReady, true, "")
		} else {
			r.condition(corev1.PodReady, false, "ReadinessGatesNotReady")
		}
	case ready:
		r.condition(corev1.PodReady, true, "")
	case unready:
		r.condition(corev1.PodReady, false, "ReadinessGatesNotReady")
	case crash:
		r.condition(corev1.ContainersReady, false, "ContainersNotReady")
		r.condition(corev1.PodReady, false, "ContainersNotReady")
		r.containers(r.backOff)
	case restart:
		r.containers(func(c *corev1.ContainerStatus) { c.RestartCount++; r.start(c) })
	case fail:
		r.finish(corev1.PodFailed, 1)
	case complete:
		r.finish(corev1.PodSucceeded, 0)
	case terminate:
		r.condition(corev1.PodReadyToStartContainers, false, "")
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			r.finish(corev1.PodSucceeded, 0)
		} else {
			// A pod that should complete, such as a Job's, has failed if it is deleted before that.
			r.finish(corev1.PodFailed, 143)
		}
	}
	return r.PodStatus
}

// report builds the new status of a pod after a step.
type report struct {
	corev1.PodStatus
	pod *corev1.Pod
	now metav1.Time
}

// condition sets a condition of the pod. Like a kubelet, it keeps the last transition time if the
// condition's status does not change.
func (r *report) condition(name corev1.PodConditionType, status bool, reason string) {
	c := corev1.PodCondition{
		Type: name, Status: corev1.ConditionFalse, Reason: reason, Message: r.message(reason),
		ObservedGeneration: r.pod.Generation, LastTransitionTime: r.now,
	}
	if status {
		c.Status = corev1.ConditionTrue
	}
	for i, old := range r.Conditions {
		if old.Type == name {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			r.Conditions[i] = c
			return
		}
	}
	r.Conditions = append(r.Conditions, c)
}

func (r *report) message(reason string) string {
	switch reason {
	case "ContainersNotInitialized":
		return "containers with incomplete status: " + names(slices.DeleteFunc(slices.Clone(r.pod.Spec.InitContainers), r.initialized))
	case "ContainersNotReady":
		return "containers with unready status: " + names(r.pod.Spec.Containers)
	case "ReadinessGatesNotReady":
		var closed []string
		for _, gate := range r.pod.Spec.ReadinessGates {
			if !isTrue(r.pod, gate.ConditionType) {
				closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not \"True\"", gate.ConditionType))
			}
		}
		return strings.Join(closed, ", ")
	}
	return ""
}

// initialized reports whether an init container no longer holds up the start of the pod: it has
// completed, or it is a sidecar and has started.
func (r *report) initialized(c corev1.Container) bool {
	return slices.ContainsFunc(r.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name && s.Ready })
}

func names(containers []corev1.Container) string {
	var list []string
	for _, c := range containers {
		list = append(list, c.Name)
	}
	return "[" + strings.Join(list, " ") + "]"
}

// containers updates the status of each main container. Like a kubelet, it sorts the statuses of
// main containers by name; the order of init containers is unchanged.
func (r *report) containers(update func(*corev1.ContainerStatus)) {
	r.ContainerStatuses = updated(r.pod.Spec.Containers, r.ContainerStatuses, update)
	slices.SortFunc(r.ContainerStatuses, func(a, b corev1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
}

func (r *report) initContainers(update func(*corev1.ContainerStatus)) {
	r.InitContainerStatuses = updated(r.pod.Spec.InitContainers, r.InitContainerStatuses, update)
}

// initContainer updates the status of the init container with the given index.
func (r *report) initContainer(i int, update func(*corev1.ContainerStatus)) {
	update(&r.InitContainerStatuses[i])
}

// setUp sets the status of a pod whose pod sandbox, the environment of its containers, has been
// created.
func (r *report) setUp(podIP string) {
	r.address(podIP)
	r.condition(corev1.PodReadyToStartContainers, true, "")
	r.nextInitContainer()
}

// address sets the pod's IP address unless the given address is empty. The address is empty for a
// pod with host networking on a node without an address.
func (r *report) address(ip string) {
	if ip != "" {
		r.PodIP, r.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	}
}

// nextInitContainer starts the next init container and the sidecars before it. If there is no
// further init container, it starts the remaining sidecars and marks the pod as initialized.
func (r *report) nextInitContainer() {
	sidecars := map[string]bool{}
	for _, c := range r.pod.Spec.InitContainers {
		sidecars[c.Name] = sidecar(c)
	}
	waiting := false
	r.initContainers(func(c *corev1.ContainerStatus) {
		switch {
		case waiting || !sidecars[c.Name] && done(*c):
		case sidecars[c.Name]:
			r.start(c)
			c.Ready = true
		default:
			r.start(c)
			waiting = true
		}
	})
	if waiting {
		r.condition(corev1.PodInitialized, false, "ContainersNotInitialized")
	} else {
		r.condition(corev1.PodInitialized, true, "")
	}
}

// backOff terminates a container with an error, and makes it wait in CrashLoopBackOff until it is
// restarted.
func (r *report) backOff(c *corev1.ContainerStatus) {
	r.end(c, 1)
	c.LastTerminationState = c.State
	wait(c, crashLoopBackOff, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		backoffOf(c.RestartCount), c.Name, r.pod.Name, r.pod.Namespace, r.pod.UID))
}

// finish terminates all containers and sets the pod's final phase. The parameter "code" is the exit
// code of the main containers.
func (r *report) finish(phase corev1.PodPhase, code int32) {
	reason := "PodCompleted"
	if phase == corev1.PodFailed {
		reason = "PodFailed"
	}
	r.Phase = phase
	r.condition(corev1.ContainersReady, false, reason)
	r.condition(corev1.PodReady, false, reason)
	r.initContainers(func(c *corev1.ContainerStatus) {
		if c.State.Running != nil {
			r.end(c, 0)
		}
	})
	r.containers(func(c *corev1.ContainerStatus) { r.end(c, code) })
}

// updated applies the function "update" to the old status of each container, or to an initial
// status if there is none, and returns the new statuses.
func updated(containers []corev1.Container, old []corev1.ContainerStatus, update func(*corev1.ContainerStatus)) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, c := range containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(false)}
		for _, o := range old {
			if o.Name == c.Name {
				status = *o.DeepCopy()
			}
		}
		update(&status)
		list = append(list, status)
	}
	return list
}

// wait sets a container's state to waiting.
func wait(c *corev1.ContainerStatus, reason, message string) {
	c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.Ready, c.Started = false, new(false)
}

// start starts a container unless it is already running.
func (r *report) start(c *corev1.ContainerStatus) {
	if c.State.Running != nil {
		return
	}
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: r.now}}
	c.ContainerID = fmt.Sprintf("sandbox://%s/%s/%d", r.pod.UID, c.Name, c.RestartCount)
	c.ImageID = "sandbox://" + c.Image
	c.Ready, c.Started = false, new(true)
}

// end terminates a container unless it has already terminated.
func (r *report) end(c *corev1.ContainerStatus, code int32) {
	c.Ready, c.Started = false, new(false)
	if c.State.Terminated != nil {
		return
	}
	t := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", FinishedAt: r.now, ContainerID: c.ContainerID}
	if code != 0 {
		t.Reason = "Error"
	}
	if c.State.Running != nil {
		t.StartedAt = c.State.Running.StartedAt
	}
	c.State = corev1.ContainerState{Terminated: t}
}
