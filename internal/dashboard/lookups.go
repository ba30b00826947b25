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
	// metricsAge and eventsAge are the times for which metrics and events are cached. Metrics and
	// events are not watched, but read when a page needs them.
	metricsAge = 15 * time.Second
	eventsAge  = 10 * time.Second
	// outdatedAge is the additional time for which the outdated answer to a lookup is still shown
	// while a new answer is being read.
	outdatedAge = 30 * time.Second
	// mostAnswers is the maximum number of cached answers for each kind of lookup.
	mostAnswers = 500
	// askLimit is the time limit for a lookup in the API server.
	askLimit = 10 * time.Second
	// answerPatience is the maximum time that a newly opened page of a large cluster waits for the
	// answers to its lookups and for its forecast. After that, the page shows them as unknown, and
	// the page's stream shows them later.
	answerPatience = 50 * time.Millisecond
)

// memo caches the answers to one kind of lookup in the cluster, keyed by the lookup's parameters.
// Lookups run in the background.
type memo[K comparable, V any] struct {
	age  time.Duration
	mu   sync.Mutex
	kept map[K]*answer[V]
}

// answer is the cached answer to a lookup in the cluster, with the time at which the lookup began.
type answer[V any] struct {
	at    time.Time
	value V
	known bool
	// asking is closed when the running lookup ends. It is nil if no lookup is running.
	asking chan struct{}
	// late is set if, while the lookup was running, a page was shown without the answer or with an
	// outdated answer.
	late bool
}

// missing represents an answer that a page needs and whose lookup is still running.
type missing struct {
	// known is closed when the answer arrives.
	known <-chan struct{}
	// forgo records that the page is shown without the answer, so that the page is built again when
	// the answer arrives.
	forgo func()
}

// get returns the cached answer to a lookup with the given parameters. If the answer is older than
// m.age, get starts a new lookup by calling ask in the background. Until the lookup ends, get
// returns the previous answer, but for at most outdatedAge. If there is no such answer, get returns
// the missing answer in lacks. get calls onLate at the end of a lookup if a page was shown without
// its answer.
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

// ask runs a lookup by calling the function ask, and caches the answer in a.
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

// last returns the last answer to a lookup, regardless of its age. It returns the zero value if
// there is no answer yet.
func (m *memo[K, V]) last(question K) (value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.kept[question]; a != nil {
		return a.value
	}
	return value
}

// lookups reads data from the cluster without watches, and caches it.
type lookups struct {
	cluster Cluster
	// onLate is called when a lookup ends after a page was shown without its answer, so that the
	// page can be built again.
	onLate   func()
	metrics  memo[struct{}, view.NodeMetrics]
	events   memo[ObjectRef, eventsOf]
	managers memo[struct{}, view.Manager]
	// likes caches a pod for each workload that a user selected on the capacity page.
	likes memo[likeName, podOfLike]
	// drains caches the pods that block draining a node, keyed by node name.
	drains memo[string, Drain]
	// rights caches the results of access reviews, keyed by the reviewed permission.
	rights memo[Right, bool]
}

func newLookups(cluster Cluster) *lookups {
	l := &lookups{cluster: cluster, onLate: func() {}}
	l.metrics.age, l.events.age, l.managers.age, l.likes.age, l.rights.age, l.drains.age = metricsAge, eventsAge, metricsAge, likeAge, rightsAge, eventsAge
	return l
}

// questions collects the lookups of a page that is being built. Building the page does not wait for
// the lookups. The page is built again once their answers have arrived.
type questions struct {
	*lookups
	// ctx is done when the page must be shown without the missing answers.
	ctx   context.Context
	now   time.Time
	lacks []*missing
}

func (l *lookups) questions(ctx context.Context, now time.Time) *questions {
	return &questions{lookups: l, ctx: ctx, now: now}
}

// await waits until the missing answers have arrived, or q.ctx is done. It reports whether any of
// them has arrived.
func (q *questions) await() (arrived bool) {
	lacks := q.lacks
	q.lacks = nil
	for _, m := range lacks {
		select {
		case <-m.known:
			arrived = true
		case <-q.ctx.Done():
			m.forgo()
		}
	}
	return arrived
}

// look returns the cached answer to a lookup, or false while the lookup is running. Cancelling the
// page does not cancel the lookup, because other pages may need the answer.
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

// nodeMetrics returns the measured usage of all nodes, or the reason why the usage is unknown.
func (q *questions) nodeMetrics() view.NodeMetrics {
	metrics, known := look(q, &q.metrics, struct{}{}, q.cluster.Metrics)
	if !known {
		metrics.Problem = errNoAnswer.Error()
	}
	return metrics
}

// eventsOf holds the events about an object, or the reason why they are unknown.
type eventsOf struct {
	list    []corev1.Event
	unknown string
}

// eventsAbout returns the events about an object, or the reason why they are unknown.
func (q *questions) eventsAbout(ref ObjectRef) (events []corev1.Event, unknown string) {
	found, known := look(q, &q.events, ref, func(ctx context.Context) eventsOf {
		list, err := q.cluster.Events(ctx, ref)
		if err != nil {
			return eventsOf{unknown: err.Error()}
		}
		return eventsOf{list: list}
	})
	if !known {
		found.unknown = errNoAnswer.Error()
	}
	return found.list, found.unknown
}

// manager returns the state of Tidekeeper's manager. While the API server is unreachable, it
// returns the last known state.
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

// errNoAnswer is the error that explains why data is unknown while its lookup is running.
var errNoAnswer = errors.New("the API server has not answered yet")

// podLike returns a pod with the properties of the named workload's pods, or an error.
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

// may reports whether actions are enabled and the user has the given permission. It returns false
// while the access review is running.
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
