// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations on a pod with the total resource usage of its containers.
const (
	// CPUUsageAnnotation contains the CPU usage of all containers of the pod as a quantity, such as
	// 250m.
	CPUUsageAnnotation = "sandbox.tidekeeper.dev/cpu-usage"
	// MemoryUsageAnnotation contains the memory usage of all containers of the pod as a quantity,
	// such as 100Mi.
	MemoryUsageAnnotation = "sandbox.tidekeeper.dev/memory-usage"
)

// Default resource usage. It is never 0, because clients would conclude that the container has just
// terminated.
const (
	// shareOfRequest is the fraction of its resource requests that a container uses.
	shareOfRequest = 0.5
	// leastCPU and leastMemory are the minimum usage of a container, in cores and bytes. They apply
	// to containers with small or missing resource requests.
	leastCPU    = 0.001
	leastMemory = 10 << 20
	// ownCPU and ownMemory are a node's usage in addition to the usage of its pods, in cores and
	// bytes.
	ownCPU    = 0.1
	ownMemory = 500 << 20
)

// usage is an amount of CPU in cores, and of memory in bytes.
type usage struct{ cpu, memory float64 }

// containerUsage holds the usage of a running container and the container's start time.
type containerUsage struct {
	usage
	name    string
	started time.Time
}

// usageOf returns the usage of each running container of a pod.
func usageOf(pod *corev1.Pod) ([]containerUsage, error) {
	var running []containerUsage
	for i := range pod.Status.ContainerStatuses {
		if state := pod.Status.ContainerStatuses[i].State.Running; state != nil {
			running = append(running, containerUsage{name: pod.Status.ContainerStatuses[i].Name, started: state.StartedAt.Time})
		}
	}
	for _, r := range []struct {
		annotation string
		resource   corev1.ResourceName
		least      float64
		value      func(*usage) *float64
	}{
		{CPUUsageAnnotation, corev1.ResourceCPU, leastCPU, func(u *usage) *float64 { return &u.cpu }},
		{MemoryUsageAnnotation, corev1.ResourceMemory, leastMemory, func(u *usage) *float64 { return &u.memory }},
	} {
		total, told, err := quantity(pod, r.annotation)
		if err != nil {
			return nil, err
		}
		for i := range running {
			value := r.value(&running[i].usage)
			if told {
				*value = total / float64(len(running))
				continue
			}
			request := requests(pod, running[i].name)[r.resource]
			*value = max(r.least, shareOfRequest*request.AsApproximateFloat64())
		}
	}
	return running, nil
}

// quantity parses a pod's annotation, and reports whether the pod has it.
func quantity(pod *corev1.Pod, annotation string) (float64, bool, error) {
	text, told := pod.Annotations[annotation]
	if !told {
		return 0, false, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return 0, false, fmt.Errorf("pod %s/%s: annotation %s: %q is not a quantity such as 250m or 100Mi", pod.Namespace, pod.Name, annotation, text)
	}
	return q.AsApproximateFloat64(), true, nil
}

func requests(pod *corev1.Pod, container string) corev1.ResourceList {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == container {
			return pod.Spec.Containers[i].Resources.Requests
		}
	}
	return nil
}

// meter accumulates the CPU time of a node and of its containers. Each read of the metrics adds the
// CPU time since the previous read.
type meter struct {
	at         time.Time
	node       float64
	containers map[containerKey]counter
}

// containerKey identifies a run of a container, from a start of the container to its next start.
type containerKey struct {
	pod     types.UID
	name    string
	started int64
}

type counter struct {
	usage containerUsage
	// seconds is the CPU time that the container has used since its start.
	seconds float64
}

// read adds the CPU time since the last call of read or, for a container that is new, since the
// start of the container. It assumes that the usage has not changed during this time. It drops
// containers that no longer run.
func (m *meter) read(now, started time.Time, running map[containerKey]containerUsage) (node counter, containers map[containerKey]counter) {
	node.usage = containerUsage{started: started, usage: usage{ownCPU, ownMemory}}
	if m.at.IsZero() {
		m.at = started
	}
	m.node += ownCPU * max(0, now.Sub(m.at).Seconds())
	next := make(map[containerKey]counter, len(running))
	for key, u := range running {
		before, known := m.containers[key]
		since := u.started
		if known {
			since = m.at
		}
		used := u.cpu * max(0, now.Sub(since).Seconds())
		next[key] = counter{usage: u, seconds: before.seconds + used}
		m.node += used
		node.usage.cpu += u.cpu
		node.usage.memory += u.memory
	}
	m.at, m.containers = now, next
	node.seconds = m.node
	return node, next
}
