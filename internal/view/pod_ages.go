// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// PodAges maps each workload to the creation time of its oldest pod.
type PodAges map[forecast.TargetKey]time.Time

// Add updates the entry of the pod's workload. It ignores terminated pods, and pods without a
// workload of a supported kind.
func (a PodAges) Add(pod *corev1.Pod) {
	kind, name := pods.Workload(pod)
	if kind == "" || !pods.IsActive(pod) {
		return
	}
	for _, k := range workload.Kinds {
		if k.Kind != kind {
			continue
		}
		key := forecast.KeyOf(pod.Namespace, k.Ref(name))
		if before, known := a[key]; !known || pod.CreationTimestamp.Time.Before(before) {
			a[key] = pod.CreationTimestamp.Time
		}
	}
}
