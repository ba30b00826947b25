// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// done are the pods that are not to be counted any more.
	done map[types.UID]struct{}
	// since is when this manager began to lead; zero: it does not.
	since time.Time
}

func newObserver(m *metrics, poolOf func(string) string) *observer {
	return &observer{metrics: m, poolOf: poolOf, done: map[types.UID]struct{}{}}
}

// lead begins to count.
func (o *observer) lead(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = now
}

// set looks at a pod that has appeared or changed; first: it was there before
// the manager looked.
func (o *observer) set(pod *corev1.Pod, first bool) {
	summary := Condition(pod, SummaryCondition)
	if summary == nil || !first && !isTrue(summary) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, done := o.done[pod.UID]; done {
		return
	}
	o.done[pod.UID] = struct{}{}
	if !first && !o.since.IsZero() && summary.LastTransitionTime.After(o.since.Truncate(Grain)) {
		o.metrics.observe(o.poolOf(pod.Spec.NodeName), decode(summary.Message))
	}
}

// remove forgets a pod that is gone.
func (o *observer) remove(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.done, pod.UID)
}
