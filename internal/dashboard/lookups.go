// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/view"
)

const (
	// metricsAge and eventsAge are the maximum ages of objects that are read without a watch.
	metricsAge = 15 * time.Second
	eventsAge  = 10 * time.Second
	// outdatedAge is how much older an answer may be than its age while the question is asked again.
	outdatedAge = 30 * time.Second
	// mostAnswers is the maximum number of cached answers per kind of lookup.
	mostAnswers = 500
	// askLimit is how long the API server is waited for.
	askLimit = 10 * time.Second
)

// memo keeps the answers to a kind of question for some time. Questions are asked beside the pages.
// The zero value keeps none.
type memo[K comparable, V any] struct {
	age  time.Duration
	mu   sync.Mutex
	kept map[K]*answer[V]
}

// answer is the answer to a question that was asked at a time.
type answer[V any] struct {
	at    time.Time
	value V
	known bool
	// asking is closed with the next answer; nil if the question is not being asked.
	asking chan struct{}
	// late says that a page was shown without the next answer.
	late bool
}

// missing is an answer that a page lacks.
type missing struct {
	// known is closed when the answer is there.
	known <-chan struct{}
	// forgo says that the page is shown without the answer.
	forgo func()
}

// get returns the answer to a question, which is asked again if the answer is too old. An answer that is
// only a little too old is returned meanwhile; without one, it is missing. onLate is called with an answer
// that pages were shown without.
func (m *memo[K, V]) get(question K, now time.Time, ask func() V, onLate func()) (value V, lacks *missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.kept[question]
	if a == nil {
		if len(m.kept) >= mostAnswers {
			maps.DeleteFunc(m.kept, func(_ K, a *answer[V]) bool { return a.asking == nil })
		}
		if m.kept == nil {
			m.kept = map[K]*answer[V]{}
		}
		a = &answer[V]{}
		m.kept[question] = a
	}
	age := now.Sub(a.at)
	if a.known && age < m.age {
		return a.value, nil
	}
	if a.asking == nil {
		a.asking = make(chan struct{})
		go m.ask(a, now, ask, onLate)
	}
	if a.known && age < m.age+outdatedAge {
		a.late = true
		return a.value, nil
	}
	return value, &missing{a.asking, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		a.late = a.asking != nil
	}}
}

// ask asks a question, and keeps the answer.
func (m *memo[K, V]) ask(a *answer[V], now time.Time, ask func() V, onLate func()) {
	value := ask()
	m.mu.Lock()
	late := a.late
	a.at, a.value, a.known, a.late = now, value, true, false
	close(a.asking)
	a.asking = nil
	m.mu.Unlock()
	if late {
		onLate()
	}
}

// last returns the last answer to a question, of any age.
func (m *memo[K, V]) last(question K) (value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.kept[question]; a != nil {
		return a.value
	}
	return value
}

// lookups reads from the cluster without a watch, and caches the answers for some time.
type lookups struct {
	cluster Cluster
	// onLate is called when there is an answer that a page was shown without; nil for nothing.
	onLate   func()
	metrics  memo[struct{}, view.NodeMetrics]
	events   memo[ObjectRef, []corev1.Event]
	managers memo[struct{}, view.Manager]
	// likes has copies of the pods of workloads.
	likes memo[likeName, podOfLike]
	// rights has the results of access reviews.
	rights memo[Right, bool]
}

func newLookups(cluster Cluster) *lookups {
	l := &lookups{cluster: cluster, onLate: func() {}}
	l.metrics.age, l.events.age, l.managers.age, l.likes.age, l.rights.age = metricsAge, eventsAge, metricsAge, likeAge, rightsAge
	return l
}

// questions are the questions of a page that is being built. Building it waits for no answer: the page
// is built again when the answers that it lacks are there.
type questions struct {
	*lookups
	// ctx ends with the patience of the page.
	ctx   context.Context
	now   time.Time
	lacks []*missing
}

func (l *lookups) questions(ctx context.Context, now time.Time) *questions {
	return &questions{lookups: l, ctx: ctx, now: now}
}

// await waits for the missing answers, and reports whether there were any.
func (q *questions) await() bool {
	lacks := q.lacks
	q.lacks = nil
	for _, m := range lacks {
		select {
		case <-m.known:
		case <-q.ctx.Done():
			m.forgo()
		}
	}
	return len(lacks) > 0
}

// look returns the answer to a question of a page; a zero value while it is missing. The question outlives
// the page, as other pages may wait for the answer.
func look[K comparable, V any](q *questions, m *memo[K, V], question K, ask func(context.Context) V) (value V, known bool) {
	value, lacks := m.get(question, q.now, func() V {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(q.ctx), askLimit)
		defer cancel()
		return ask(ctx)
	}, q.onLate)
	if lacks != nil {
		q.lacks = append(q.lacks, lacks)
	}
	return value, lacks == nil
}

// nodeMetrics returns the usage of the nodes.
func (q *questions) nodeMetrics() view.NodeMetrics {
	metrics, _ := look(q, &q.metrics, struct{}{}, q.cluster.Metrics)
	return metrics
}

// eventsAbout returns the events about an object; none if the user may not read them.
func (q *questions) eventsAbout(ref ObjectRef) []corev1.Event {
	events, _ := look(q, &q.events, ref, func(ctx context.Context) []corev1.Event {
		list, err := q.cluster.Events(ctx, ref)
		if err != nil {
			return nil
		}
		return list
	})
	return events
}

// manager returns the state of the manager, or its last known state while the API server is unreachable.
func (q *questions) manager(reachable bool) view.Manager {
	if !reachable {
		return q.managers.last(struct{}{})
	}
	manager, known := look(q, &q.managers, struct{}{}, q.cluster.Manager)
	if !known {
		return q.managers.last(struct{}{})
	}
	return manager
}

// errNoAnswer is the error for a question that was not answered in time.
var errNoAnswer = errors.New("the API server has not answered yet")

// podLike returns a copy of the pods of a workload.
func (q *questions) podLike(name likeName) podOfLike {
	pod, known := look(q, &q.likes, name, func(ctx context.Context) podOfLike {
		pod, lacks, err := q.cluster.PodLike(ctx, name.namespace, name.like)
		return podOfLike{pod, lacks, err}
	})
	if !known {
		return podOfLike{err: errNoAnswer}
	}
	return pod
}

// may reports whether actions are enabled and the user has the right.
func (q *questions) may(right Right) bool {
	actions := q.cluster.Actions
	if actions == nil {
		return false
	}
	may, _ := look(q, &q.rights, right, func(ctx context.Context) bool {
		allowed, err := actions.Allowed(ctx, right)
		return allowed && err == nil
	})
	return may
}
