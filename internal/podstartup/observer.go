// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/podtimeline"
)

// observer counts the start-up of each pod once, when the pod first becomes ready.
//
// It writes nothing to pods, so it must derive from what it sees which pods have been
// counted. It counts a pod if this manager leads, saw the pod become ready, and the pod
// is ready since after the manager began to lead. A restarted manager therefore does
// not count pods that it finds ready, or that may have been ready before; and a new
// leader does not count pods that its predecessor has counted. Pods that become ready
// while no manager leads, or within the second in which one begins to, are never
// counted: undercounting is preferred to double counting.
type observer struct {
	metrics *metrics
	// poolOf returns the pool of a node, or "".
	poolOf func(node string) string

	mu sync.Mutex
	// awaited are the pods that will be counted when they become ready. Most pods of a
	// cluster are ready, and take no room here.
	awaited sets.Set[types.UID]
	// leadingSince is when this manager began to lead; zero if it does not.
	leadingSince time.Time
}

func newObserver(m *metrics, poolOf func(string) string) *observer {
	return &observer{metrics: m, poolOf: poolOf, awaited: sets.New[types.UID]()}
}

// lead starts the counting.
func (o *observer) lead(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leadingSince = now
}

// add handles a pod that has appeared. initial reports whether the pod was there before
// the manager watched.
func (o *observer) add(pod *corev1.Pod, initial bool) {
	if initial && podtimeline.Summary(pod) != nil {
		return // It is ready, or may have been.
	}
	o.mu.Lock()
	o.awaited.Insert(pod.UID)
	o.mu.Unlock()
	o.update(pod)
}

// update handles a pod that has changed.
func (o *observer) update(pod *corev1.Pod) {
	summary := podtimeline.Summary(pod)
	if summary == nil || summary.Status != corev1.ConditionTrue {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.awaited.Has(pod.UID) {
		return
	}
	o.awaited.Delete(pod.UID)
	if !o.leadingSince.IsZero() && summary.LastTransitionTime.After(o.leadingSince.Truncate(podtimeline.Resolution)) {
		o.metrics.observe(o.poolOf(pod.Spec.NodeName), podtimeline.StageDurations(summary))
	}
}

// remove forgets a pod that is gone.
func (o *observer) remove(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited.Delete(pod.UID)
}
