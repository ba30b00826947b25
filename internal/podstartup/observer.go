// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// observer counts the start-up of each pod once, when it first becomes ready.
//
// No pod is written to, so what has been counted must follow from what is seen.
// A pod counts if this manager leads, has seen it become ready, and the pod is
// ready since after the manager began to lead. So a manager that is restarted
// does not count what it finds ready, or what it cannot tell was never ready;
// and one that takes over does not count what its forerunner has counted. What
// becomes ready while no manager leads, and in the second in which one begins
// to, is never counted: rather too few than any twice.
type observer struct {
	metrics *metrics
	// poolOf returns the pool of a node, or "".
	poolOf func(node string) string

	mu sync.Mutex
	// awaited are the pods that are counted when they become ready. Of most pods
	// of a cluster nothing is awaited any more, and so nothing is kept.
	awaited sets.Set[types.UID]
	// since is when this manager began to lead; zero: it does not.
	since time.Time
}

func newObserver(m *metrics, poolOf func(string) string) *observer {
	return &observer{metrics: m, poolOf: poolOf, awaited: sets.New[types.UID]()}
}

// lead begins to count.
func (o *observer) lead(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = now
}

// add looks at a pod that has appeared; first: it was there before the manager
// looked.
func (o *observer) add(pod *corev1.Pod, first bool) {
	if first && Condition(pod, SummaryCondition) != nil {
		return // It is ready, or may have been.
	}
	o.mu.Lock()
	o.awaited.Insert(pod.UID)
	o.mu.Unlock()
	o.change(pod)
}

// change looks at a pod that has changed.
func (o *observer) change(pod *corev1.Pod) {
	summary := Condition(pod, SummaryCondition)
	if !isTrue(summary) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.awaited.Has(pod.UID) {
		return
	}
	o.awaited.Delete(pod.UID)
	if !o.since.IsZero() && summary.LastTransitionTime.After(o.since.Truncate(Grain)) {
		o.metrics.observe(o.poolOf(pod.Spec.NodeName), decode(summary.Message))
	}
}

// remove forgets a pod that is gone.
func (o *observer) remove(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited.Delete(pod.UID)
}
