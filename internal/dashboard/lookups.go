// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/view"
)

const (
	// metricsAge and eventsAge are the ages of answers that are read without a watch.
	metricsAge = 15 * time.Second
	eventsAge  = 10 * time.Second
	// mostAnswers is how many answers of a kind are kept.
	mostAnswers = 100
)

// memo keeps the answers to a kind of question for some time. The zero value keeps none.
type memo[K comparable, V any] struct {
	age  time.Duration
	kept map[K]answer[V]
}

// answer is the answer to a question at a time.
type answer[V any] struct {
	at    time.Time
	value V
}

// get returns the answer to a question, which is asked again if the answer is too old.
func (m *memo[K, V]) get(question K, now time.Time, ask func() V) V {
	known, answered := m.kept[question]
	if answered && now.Sub(known.at) < m.age {
		return known.value
	}
	value := ask()
	if m.kept == nil || len(m.kept) >= mostAnswers {
		m.kept = map[K]answer[V]{}
	}
	m.kept[question] = answer[V]{now, value}
	return value
}

// last returns the last answer to a question, however old.
func (m *memo[K, V]) last(question K) V { return m.kept[question].value }

// lookups read from the cluster without a watch, and keep the answers for a while.
type lookups struct {
	cluster  Cluster
	metrics  memo[struct{}, view.NodeMetrics]
	events   memo[ObjectRef, []corev1.Event]
	managers memo[struct{}, view.Manager]
	// likes are copies of the pods of workloads.
	likes memo[likeName, podOfLike]
	// rights are the answers of access reviews.
	rights memo[Right, bool]
}

func newLookups(cluster Cluster) *lookups {
	l := &lookups{cluster: cluster}
	l.metrics.age, l.events.age, l.managers.age, l.likes.age, l.rights.age = metricsAge, eventsAge, metricsAge, likeAge, rightsAge
	return l
}

// nodeMetrics returns how much the nodes use.
func (l *lookups) nodeMetrics(ctx context.Context, now time.Time) view.NodeMetrics {
	return l.metrics.get(struct{}{}, now, func() view.NodeMetrics { return l.cluster.Metrics(ctx) })
}

// eventsAbout returns the events about an object; none if they may not be read.
func (l *lookups) eventsAbout(ctx context.Context, now time.Time, ref ObjectRef) []corev1.Event {
	return l.events.get(ref, now, func() []corev1.Event {
		list, err := l.cluster.Events(ctx, ref)
		if err != nil {
			return nil
		}
		return list
	})
}

// manager returns the state of the manager, as it was last known while the API server cannot be
// reached.
func (l *lookups) manager(ctx context.Context, now time.Time, reachable bool) view.Manager {
	if !reachable {
		return l.managers.last(struct{}{})
	}
	return l.managers.get(struct{}{}, now, func() view.Manager { return l.cluster.Manager(ctx) })
}

// podLike returns a copy of the pods of a workload.
func (l *lookups) podLike(ctx context.Context, now time.Time, name likeName) podOfLike {
	return l.likes.get(name, now, func() podOfLike {
		pod, lacks, err := l.cluster.PodLike(ctx, name.namespace, name.like)
		return podOfLike{pod, lacks, err}
	})
}

// may reports whether actions are allowed, and the user has the right.
func (l *lookups) may(ctx context.Context, now time.Time, right Right) bool {
	actions := l.cluster.Actions
	if actions == nil {
		return false
	}
	return l.rights.get(right, now, func() bool {
		ctx, cancel := context.WithTimeout(ctx, actionTimeout)
		defer cancel()
		allowed, err := actions.Allowed(ctx, right)
		return allowed && err == nil
	})
}
