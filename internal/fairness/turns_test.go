// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// of returns the namespace of a test request, which is the part before the slash, as in a/1.
func of(request string) string {
	namespace, _, _ := strings.Cut(request, "/")
	return namespace
}

func (t *turns[R]) add(r R, priority int) {
	t.want(r, priority)
	t.Push(r)
}

// popAll returns all requests in the order in which a single worker would get them.
func popAll(t *turns[string]) (all []string) {
	for t.Len() > 0 {
		r := t.Pop()
		all = append(all, r)
		t.end(r)
	}
	return all
}

func TestTurns(t *testing.T) {
	for name, tt := range map[string]struct {
		add  func(*turns[string])
		want string
	}{
		"one namespace, in order":  {func(q *turns[string]) { q.add("a/1", 0); q.add("a/2", 0); q.add("a/3", 0) }, "a/1 a/2 a/3"},
		"one namespace, by urgent": {func(q *turns[string]) { q.add("a/1", -100); q.add("a/2", 0); q.add("a/3", 1); q.add("a/4", 1) }, "a/3 a/4 a/2 a/1"},
		"namespaces take turns": {func(q *turns[string]) {
			for i := range 4 {
				q.add(fmt.Sprint("a/", i), 1)
			}
			q.add("b/0", 0)
			q.add("b/1", 0)
			q.add("c/0", -100)
		}, "a/0 b/0 c/0 a/1 b/1 a/2 a/3"},
		"within a round, the urgent first": {func(q *turns[string]) { q.add("a/1", -100); q.add("b/1", 0); q.add("c/1", 1) }, "c/1 b/1 a/1"},
		"an urgent one that comes later": {func(q *turns[string]) {
			for i := range 3 {
				q.add(fmt.Sprint("a/", i), 0)
				q.add(fmt.Sprint("b/", i), 0)
			}
			q.end(q.Pop())
			q.add("c/0", 1)
		}, "c/0 b/0 a/1 b/1 a/2 b/2"},
		"urgent ones do not stand before a namespace that waits": {func(q *turns[string]) {
			q.add("b/0", -100)
			for i := range 3 {
				q.add(fmt.Sprint("a/", i), 1)
			}
		}, "a/0 b/0 a/1 a/2"},
		"one becomes urgent": {func(q *turns[string]) {
			q.add("a/1", 0)
			q.add("a/2", -100)
			q.want("a/2", 1)
			q.Touch("a/2")
			q.want("a/1", -100)
			q.Touch("a/1")
		}, "a/2 a/1"},
	} {
		q := newTurns(1, of)
		tt.add(q)
		if got := strings.Join(popAll(q), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestWorkersOfANamespace checks that a namespace cannot use all workers, regardless of the number
// of its requests.
func TestWorkersOfANamespace(t *testing.T) {
	q := newTurns(64, of)
	got := map[string]int{}
	for _, namespace := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		for i := range 100 {
			q.add(fmt.Sprint(namespace, "/", i), 1)
		}
		for q.Len() > 0 {
			got[of(q.Pop())]++
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 32, "b": 16, "c": 8, "d": 4, "e": 2, "f": 1, "g": 1}, got); diff != "" {
		t.Errorf("workers by namespace (-want +got):\n%s", diff)
	}
	q.end("a/0")
	if q.Len() == 0 || of(q.Pop()) != "h" {
		t.Error("the worker that is free goes to another one than the namespace that has none")
	}
}

// TestTurnsAreFair checks for random sequences of added and finished requests that the only request
// of a namespace waits for at most two requests of each other namespace. No request may be lost,
// handed out twice, or handed out while its namespace uses as many workers as are free.
func TestTurnsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newTurns(rapid.IntRange(1, 6).Draw(t, "workers"), of)
		waiting, running := map[string]bool{}, map[string]bool{}
		in := func(requests map[string]bool, namespace string) (n int) {
			for r := range requests {
				if of(r) == namespace {
					n++
				}
			}
			return n
		}
		// passed maps each namespace with a single waiting request to the number of requests that
		// were handed out for each other namespace in the meantime.
		passed := map[string]map[string]int{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				namespace := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "namespace")
				for range rapid.IntRange(1, 8).Draw(t, "count") {
					r := fmt.Sprint(namespace, "/", rapid.IntRange(0, 20).Draw(t, "name"))
					if running[r] {
						continue
					}
					q.want(r, rapid.SampledFrom([]int{-100, 0, 1}).Draw(t, "priority"))
					if waiting[r] {
						q.Touch(r)
						continue
					}
					delete(passed, namespace)
					if in(waiting, namespace)+in(running, namespace) == 0 {
						passed[namespace] = map[string]int{}
					}
					q.Push(r)
					waiting[r] = true
				}
			},
			"pop": func(t *rapid.T) {
				if q.Len() == 0 {
					t.Skip()
				}
				r := q.Pop()
				if !waiting[r] || running[r] {
					t.Fatalf("%s is handed out, and does not wait", r)
				}
				if has, free := in(running, of(r)), q.workers-len(running); has >= free {
					t.Fatalf("%s gets one of %d workers that are free, and uses %d", r, free, has)
				}
				delete(waiting, r)
				running[r] = true
				delete(passed, of(r))
				for waits, others := range passed {
					if others[of(r)]++; others[of(r)] > 2 {
						t.Fatalf("%s waits while %s gets %d workers", waits, of(r), others[of(r)])
					}
				}
			},
			"end": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip()
				}
				r := rapid.SampledFrom(slices.Sorted(maps.Keys(running))).Draw(t, "request")
				q.end(r)
				delete(running, r)
			},
			"": func(t *rapid.T) {
				may := false
				for r := range waiting {
					may = may || in(running, of(r)) < q.workers-len(running)
				}
				if got := q.Len(); may && got != len(waiting) || !may && got != 0 {
					t.Fatalf("%d of %d may run, want all: %t", got, len(waiting), may)
				}
			},
		})
		for r := range running {
			q.end(r)
		}
		if got := len(popAll(q)); got != len(waiting) {
			t.Fatalf("%d of %d that wait come", got, len(waiting))
		}
		// Only the state of namespaces that have had their turn in this round may be kept.
		if len(q.spaces) > 4 || len(q.waiting)+len(q.running)+len(q.wanted) > 0 {
			t.Fatalf("%d namespaces and the priorities %v are kept", len(q.spaces), q.wanted)
		}
	})
}

// TestTurnsForgetNamespaces checks that turns drops the state of namespaces without requests.
func TestTurnsForgetNamespaces(t *testing.T) {
	q := newTurns(4, of)
	for i := range 10_000 {
		q.add(fmt.Sprint("tenant-", i, "/x"), 0)
		q.end(q.Pop())
	}
	if len(q.spaces) > 2 {
		t.Errorf("%d namespaces are kept", len(q.spaces))
	}
}
