// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// observer counts the startup of each pod once, when the pod first becomes Ready.
//
// The observer does not mark the pods that it has counted. It counts a pod only if the pod became
// Ready after this manager began to lead, and if this manager observed that. A restarted manager
// therefore does not count pods that are Ready when it starts, or that may have been Ready before.
// A new leader does not count pods that the previous leader has counted. Pods that become Ready
// while no manager leads, or within the second in which a manager begins to lead, are never
// counted. Counting too few pods is better than counting a pod twice.
type observer struct {
	metrics *metrics
	// poolOf returns the name of a node's pool. It returns "" if the node belongs to no pool.
	poolOf func(node string) string

	mu sync.Mutex
	// awaited is the set of pods that will be counted when they become Ready. Most pods of a
	// cluster are already Ready, and are not in the set.
	awaited sets.Set[types.UID]
	// leadingSince is the time at which this manager began to lead; zero if this manager is not the
	// leader.
	leadingSince time.Time
}

func newObserver(m *metrics, poolOf func(string) string) *observer {
	return &observer{metrics: m, poolOf: poolOf, awaited: sets.New[types.UID]()}
}

// lead makes the observer count the pods that become Ready after the given time, at which this
// manager began to lead.
func (o *observer) lead(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leadingSince = now
}

// add handles a pod that was added to the cache. If initial is true, the pod existed before this
// manager's watch began.
func (o *observer) add(pod *corev1.Pod, initial bool) {
	if initial && podtimeline.Summary(pod) != nil {
		return // The pod is Ready, or may have been Ready before.
	}
	o.mu.Lock()
	o.awaited.Insert(pod.UID)
	o.mu.Unlock()
	o.update(pod)
}

// update handles a changed pod, and counts it if it has become Ready.
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

// remove forgets a deleted pod.
func (o *observer) remove(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited.Delete(pod.UID)
}
