// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Prefix is the prefix of the pod annotations that control simulated kubelets. For example, the
// annotation Prefix+"ready-after" overrides the flag --pod-ready-after for a single pod.
const Prefix = "sandbox.tidekeeper.dev/"

// BehaviorAnnotation on a pod selects the behavior of its containers, such as CrashLoop.
const BehaviorAnnotation = Prefix + "behavior"

// ProgramAnnotation marks a pod whose container is a program on this machine. Its value is the name
// of a lock of package namelock, which is held while the program runs. When the lock is released,
// the simulated kubelet deletes the pod.
const ProgramAnnotation = Prefix + "program"

// Behaviors of a pod's containers, the values of BehaviorAnnotation.
const (
	// Normal containers become ready and stay ready.
	Normal = "normal"
	// Slow containers take the longer delay Delays.Slow to become ready.
	Slow = "slow"
	// NeverReady containers run, but never become ready.
	NeverReady = "never-ready"
	// CrashLoop containers fail soon after each start.
	CrashLoop = "crash-loop"
	// ImagePullBackOff containers never start, because their image cannot be pulled.
	ImagePullBackOff = "image-pull-backoff"
	// InitCrashLoop makes a pod's first init container fail soon after each start.
	InitCrashLoop = "init-crash-loop"
)

var behaviors = []string{Normal, Slow, NeverReady, CrashLoop, ImagePullBackOff, InitCrashLoop}

// plan holds a pod's behavior and delays, which come from the pod's annotations or else from the
// defaults.
type plan struct {
	behavior string
	delays   Delays
}

// planOf returns a pod's plan. It returns an error if the pod's annotations are invalid.
func planOf(pod *corev1.Pod, defaults Delays) (plan, error) {
	p := plan{behavior: Normal, delays: defaults}
	if b, ok := pod.Annotations[BehaviorAnnotation]; ok {
		if !slices.Contains(behaviors, b) {
			return p, fmt.Errorf("annotation %s: %q is not one of %s", BehaviorAnnotation, b, strings.Join(behaviors, ", "))
		}
		p.behavior = b
	}
	if p.behavior == InitCrashLoop && len(initContainers(pod)) == 0 {
		return p, fmt.Errorf("annotation %s: %q is for pods that have an init container", BehaviorAnnotation, InitCrashLoop)
	}
	for _, f := range p.delays.fields() {
		value, ok := pod.Annotations[Prefix+f.name]
		if !ok {
			continue
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return p, fmt.Errorf("annotation %s: %q is not a duration such as 500ms, 10s or 1m30s", Prefix+f.name, value)
		}
		*f.value = d
	}
	if _, told := pod.Annotations[Prefix+"containers-ready-after"]; p.behavior == Slow && !told {
		p.delays.ContainersReady = p.delays.Slow
	}
	return p, nil
}
