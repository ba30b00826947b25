// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

const (
	// sharedFor is the time for which an answer is reused for other restarts with the same rendered
	// query.
	sharedFor = 2 * time.Second
	// perSecond is the maximum average number of queries that this process sends per second. atOnce
	// is the maximum number of queries in a burst.
	perSecond = 20
	atOnce    = 10
)

// Evaluator runs the administrator's Prometheus queries, which decide whether a restart may start.
// The queries run in the background, and the methods of Evaluator do not block.
type Evaluator struct {
	queries []named
	ask     func(ctx context.Context, query string) (string, error)
	metrics *Metrics
	clock   clock.PassiveClock
	// answered is called with the key of a ScheduledRestart when the queries for its restart have
	// been answered.
	answered func(types.NamespacedName)

	limit  *rate.Limiter
	flight singleflight.Group

	mu      sync.Mutex
	objects map[types.NamespacedName]*object
	// shared holds recent answers, keyed by the name and the rendered text of the query.
	shared map[string]shared
}

type named struct {
	name  string
	query template
}

// object is the state of the queries for one restart. asking is true while the queries are running.
type object struct {
	workload string
	answer   *decision.Answer
	asking   bool
}

// shared is a recent answer to a query, which is reused for other restarts. closed is the reason
// for which the answer keeps restarts from starting; "" if the answer lets them start.
type shared struct {
	closed string
	at     time.Time
}

// New returns an Evaluator for the queries in the given file; nil if the file is "".
func New(file string, metrics *Metrics, c clock.PassiveClock, answered func(types.NamespacedName)) (*Evaluator, error) {
	if file == "" {
		return nil, nil
	}
	config, err := Load(file)
	if err != nil {
		return nil, err
	}
	s, err := newServer(config.Prometheus)
	if err != nil {
		return nil, err
	}
	g := newEvaluator(s.ask, metrics, c, answered)
	for _, q := range config.Queries {
		t, err := parseTemplate(q.Query)
		if err != nil {
			return nil, err
		}
		g.queries = append(g.queries, named{q.Name, t})
		metrics.prepare(q.Name)
	}
	return g, nil
}

func newEvaluator(ask func(context.Context, string) (string, error), metrics *Metrics, c clock.PassiveClock, answered func(types.NamespacedName)) *Evaluator {
	return &Evaluator{
		ask: ask, metrics: metrics, clock: c, answered: answered, limit: rate.NewLimiter(perSecond, atOnce),
		objects: map[types.NamespacedName]*object{}, shared: map[string]shared{},
	}
}

// Answer returns the last answer for a restart of the given workload. It is nil if there is no
// answer yet, or if the Evaluator is nil.
func (g *Evaluator) Answer(key types.NamespacedName, workload string) *decision.Answer {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.objects[key]; o != nil && o.workload == workload {
		return o.answer
	}
	return nil
}

// Ask starts the queries for a restart of the given workload, unless they are already running. The
// queries continue when the context is cancelled, since each query has its own time limit.
func (g *Evaluator) Ask(ctx context.Context, key types.NamespacedName, workload string) {
	g.mu.Lock()
	o := g.objects[key]
	if o == nil || o.workload != workload {
		o = &object{workload: workload}
		g.objects[key] = o
	}
	asking := o.asking
	o.asking = true
	g.mu.Unlock()
	if asking {
		return
	}
	go func() {
		closed := g.askAll(context.WithoutCancel(ctx), key.Namespace, workload)
		g.mu.Lock()
		o.asking, o.answer = false, &decision.Answer{At: g.clock.Now().Round(0), Closed: closed}
		g.mu.Unlock()
		g.answered(key)
	}()
}

// Forget drops the state of the queries for a restart.
func (g *Evaluator) Forget(key types.NamespacedName) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.objects, key)
}

// askAll runs the queries one after the other until a query fails or returns results. It then
// returns the name of that query and the reason. It returns "" if the restart may start.
func (g *Evaluator) askAll(ctx context.Context, namespace, workload string) (closed string) {
	for _, q := range g.queries {
		if closed := g.askShared(ctx, q.name, q.query.render(namespace, workload)); closed != "" {
			return closed
		}
	}
	return ""
}

// askShared runs a query, or returns the answer if the same query was answered recently.
func (g *Evaluator) askShared(ctx context.Context, name, query string) (closed string) {
	question := name + " " + query
	said, _, _ := g.flight.Do(question, func() (any, error) {
		now := g.clock.Now()
		g.mu.Lock()
		last, ok := g.shared[question]
		g.mu.Unlock()
		if age := now.Sub(last.at); ok && age >= 0 && age < sharedFor {
			return last.closed, nil
		}
		if err := g.limit.Wait(ctx); err != nil {
			return fmt.Sprintf("closed by query %s: %s", name, err), nil
		}
		closed := g.askOne(ctx, name, query)
		g.keep(question, closed)
		return closed, nil
	})
	return said.(string)
}

func (g *Evaluator) askOne(ctx context.Context, name, query string) (closed string) {
	begun := g.clock.Now()
	result, err := g.ask(ctx, query)
	took := g.clock.Since(begun)
	switch {
	case err != nil:
		g.metrics.observe(name, resultError, took)
		return fmt.Sprintf("closed, as query %s failed: %s", name, err)
	case result != "":
		g.metrics.observe(name, resultClosed, took)
		return fmt.Sprintf("closed by query %s: %s", name, result)
	}
	g.metrics.observe(name, resultOpen, took)
	return ""
}

// keep stores an answer for other restarts with the same query, and drops outdated answers.
func (g *Evaluator) keep(question, closed string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	for other, said := range g.shared {
		if age := now.Sub(said.at); age < 0 || age >= sharedFor {
			delete(g.shared, other)
		}
	}
	g.shared[question] = shared{closed, now}
}
