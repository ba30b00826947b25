// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

var shop = types.NamespacedName{Namespace: "shop", Name: "nightly"}

// asked is an Evaluator whose queries are answered by the test instead of a Prometheus server.
type asked struct {
	*Evaluator
	clock   *clocktesting.FakePassiveClock
	metrics *Metrics
	said    chan types.NamespacedName

	mu      sync.Mutex
	queries []string
	answer  func(query string) (string, error)
}

func newAsked(t *testing.T, queries ...string) *asked {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC)), metrics: metrics,
		said: make(chan types.NamespacedName, 100), answer: func(string) (string, error) { return "", nil },
	}
	a.Evaluator = newEvaluator(func(_ context.Context, query string) (string, error) {
		a.mu.Lock()
		a.queries = append(a.queries, query)
		answer := a.answer
		a.mu.Unlock()
		return answer(query)
	}, metrics, a.clock, func(key types.NamespacedName) { a.said <- key })
	for i, text := range queries {
		q, err := parseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		a.Evaluator.queries = append(a.Evaluator.queries, named{[]string{"first", "second"}[i], q})
	}
	return a
}

// now runs the queries for a restart of the workload web, and returns the reason for which the
// restart must not start.
func (a *asked) now(t *testing.T, key types.NamespacedName) string {
	t.Helper()
	const workload = "web"
	a.Ask(t.Context(), key, workload)
	if said := <-a.said; said != key {
		t.Fatalf("the answer is about %s", said)
	}
	answer := a.Answer(key, workload)
	if answer == nil || !answer.At.Equal(a.clock.Now()) {
		t.Fatalf("the answer is %+v", answer)
	}
	return answer.Closed
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queries)
}

func (a *asked) answers(answer func(query string) (string, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func TestEvaluator(t *testing.T) {
	a := newAsked(t, `ALERTS{namespace=$namespace}`, `busy{deployment=$name}`)
	if answer := a.Answer(shop, "web"); answer != nil {
		t.Errorf("nothing was asked, and the answer is %+v", answer)
	}
	if closed := a.now(t, shop); closed != "" {
		t.Errorf("closed: %s", closed)
	}
	if want := []string{`ALERTS{namespace="shop"}`, `busy{deployment="web"}`}; len(a.queries) != 2 || a.queries[0] != want[0] || a.queries[1] != want[1] {
		t.Errorf("asked %q, want %q", a.queries, want)
	}
	a.clock.SetTime(a.clock.Now().Add(sharedFor))
	a.answers(func(query string) (string, error) {
		if query == `busy{deployment="web"}` {
			return "busy{x=\"y\"}", nil
		}
		return "", nil
	})
	if closed, want := a.now(t, shop), `closed by query second: busy{x="y"}`; closed != want {
		t.Errorf("closed: %q, want %q", closed, want)
	}
	a.clock.SetTime(a.clock.Now().Add(sharedFor))
	a.answers(func(string) (string, error) { return "", errors.New("no answer within 5s") })
	before := a.count()
	if closed, want := a.now(t, shop), "closed, as query first failed: no answer within 5s"; closed != want {
		t.Errorf("closed: %q, want %q", closed, want)
	}
	if n := a.count() - before; n != 1 {
		t.Errorf("%d queries were asked, although the first closes the gate", n)
	}
	if answer := a.Answer(shop, "other"); answer != nil {
		t.Errorf("an answer about another workload: %+v", answer)
	}
	a.Forget(shop)
	if answer := a.Answer(shop, "web"); answer != nil {
		t.Errorf("an answer that is forgotten: %+v", answer)
	}
	for result, want := range map[string]float64{resultOpen: 3, resultClosed: 1, resultError: 1} {
		got := testutil.ToFloat64(a.metrics.queries.WithLabelValues("first", result)) + testutil.ToFloat64(a.metrics.queries.WithLabelValues("second", result))
		if got != want {
			t.Errorf("%s is counted %v times, want %v", result, got, want)
		}
	}
}

// TestTheSameIsAskedOnce checks that a single query is sent for many restarts that have the same
// rendered query and are due at the same time.
func TestTheSameIsAskedOnce(t *testing.T) {
	a := newAsked(t, `ALERTS{severity="page"}`)
	release := make(chan struct{})
	a.answers(func(string) (string, error) { <-release; return "ALERTS", nil })
	keys := make([]types.NamespacedName, 50)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: "shop", Name: string(rune('a' + i))}
		a.Ask(t.Context(), keys[i], "web")
		a.Ask(t.Context(), keys[i], "web") // The queries for this restart are already running.
	}
	close(release)
	for range keys {
		<-a.said
	}
	if n := a.count(); n != 1 {
		t.Errorf("%d queries", n)
	}
	select {
	case key := <-a.said:
		t.Errorf("%s was answered twice", key)
	default:
	}
	for _, key := range keys {
		if answer := a.Answer(key, "web"); answer == nil || answer.Closed == "" {
			t.Errorf("%s: %+v", key, answer)
		}
	}
	a.clock.SetTime(a.clock.Now().Add(sharedFor))
	a.now(t, shop)
	if n := a.count(); n != 2 || len(a.shared) != 1 {
		t.Errorf("later %d queries were asked, and %d answers are kept", n, len(a.shared))
	}
}

// TestQueriesAreLimited checks the rate limit when each ScheduledRestart has a different rendered
// query.
func TestQueriesAreLimited(t *testing.T) {
	a := newAsked(t, `up{name=$name}`)
	begun := time.Now()
	const more = 4
	for i := range atOnce + more {
		a.Ask(t.Context(), types.NamespacedName{Namespace: "shop", Name: string(rune('a' + i))}, string(rune('a'+i)))
	}
	for range atOnce + more {
		<-a.said
	}
	if took, least := time.Since(begun), (more-1)*time.Second/perSecond; took < least {
		t.Errorf("%d queries took %s, want at least %s", atOnce+more, took, least)
	}
}

func TestNew(t *testing.T) {
	if g, err := New("", nil, nil, nil); g != nil || err != nil {
		t.Errorf("without a file: %v, %v", g, err)
	}
	var none *Evaluator
	none.Forget(shop)
	if none.Answer(shop, "web") != nil {
		t.Error("no gate has an answer")
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte("prometheus: {url: 'http://127.0.0.1:1'}\nqueries: [{name: alerts, query: 'ALERTS{namespace=$namespace}'}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := make(chan types.NamespacedName, 1)
	g, err := New(file, metrics, clocktesting.NewFakePassiveClock(time.Now()), func(key types.NamespacedName) { said <- key })
	if err != nil {
		t.Fatal(err)
	}
	g.Ask(t.Context(), shop, "web")
	<-said
	if answer, want := g.Answer(shop, "web"), "closed, as query alerts failed: dial: connect: connection refused"; answer.Closed != want {
		t.Errorf("%q, want %q", answer.Closed, want)
	}
}
