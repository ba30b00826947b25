// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// at returns the given time of day on a fixed date.
func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-06-10T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestBudgetGoesByTick(t *testing.T) {
	b := New(1, 100)
	first, late, early := key("a", "first"), key("a", "1-late"), key("a", "2-early")
	if !b.Take(first, at("03:00:00")) {
		t.Fatal("no slot in an empty budget")
	}
	if b.Take(late, at("03:02:00")) || b.Take(early, at("03:01:00")) {
		t.Fatal("a second slot in a budget of one")
	}
	if diff := cmp.Diff([]types.NamespacedName{early}, b.Release(first)); diff != "" {
		t.Errorf("next (-want +got):\n%s", diff)
	}
	if b.Take(late, at("03:02:00")) {
		t.Error("the later tick comes before the earlier one")
	}
	if !b.Take(early, at("03:01:00")) {
		t.Error("the earlier tick has no slot")
	}
	if !b.Take(early, at("03:01:00")) {
		t.Error("asking twice loses the slot")
	}
}

func TestBudgetShare(t *testing.T) {
	b := New(4, 50)
	for i := range 4 {
		if got := b.Take(key("greedy", fmt.Sprint(i)), at("03:00:00")); got != (i < 2) {
			t.Errorf("slot %d of a namespace with a share of 2: %v", i, got)
		}
	}
	if !b.Take(key("other", "x"), at("03:05:00")) {
		t.Error("a restart that waits for the share of its namespace holds up another namespace")
	}
	if used, waiting, _ := b.Usage(); used != 3 || waiting != 2 {
		t.Errorf("%d used, %d waiting; want 3, 2", used, waiting)
	}
	if one := New(1, 1); !one.Take(key("a", "a"), at("03:00:00")) {
		t.Error("a small share gives no slot; want at least one")
	}
}

func TestBudgetIsRebuilt(t *testing.T) {
	b := New(1, 100)
	b.Hold(key("a", "x"), time.Time{})
	b.Hold(key("a", "y"), time.Time{})
	if b.Take(key("a", "z"), at("03:00:00")) {
		t.Error("a slot in addition to two that were in progress before, in a budget of one")
	}
	if next := b.Release(key("a", "x")); next != nil {
		t.Errorf("%v can have a slot while one is still in use", next)
	}
	if next := b.Release(key("a", "y")); len(next) != 1 {
		t.Errorf("%v can have a slot, want one", next)
	}
}

// TestBudgetExpects checks that a new leader considers all waiting restarts before they call Take,
// and that the namespace of the restart in progress comes last.
func TestBudgetExpects(t *testing.T) {
	b := New(1, 100)
	active, late, early, gone, short := key("long", "active"), key("long", "1-late"), key("long", "2-early"), key("long", "0-gone"), key("short", "x")
	for _, waits := range []types.NamespacedName{gone, late, early, short} {
		b.Expect(waits, at("03:10:00"))
	}
	b.Hold(active, at("03:00:00"))
	b.Expect(active, at("03:10:00"))
	if used, waiting, _ := b.Usage(); used != 1 || waiting != 4 {
		t.Errorf("%d slots are used and %d restarts wait, want 1 and 4", used, waiting)
	}
	for waits, since := range map[types.NamespacedName]time.Time{late: at("03:02:00"), early: at("03:01:00")} {
		if b.Take(waits, since) {
			t.Fatal("a second slot in a budget of one")
		}
	}
	for _, step := range []struct{ ends, next types.NamespacedName }{{active, short}, {short, early}} {
		if diff := cmp.Diff([]types.NamespacedName{step.next}, b.Release(step.ends)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.ends, diff)
		}
		if !b.Take(step.next, at("03:20:00")) {
			t.Fatalf("%s has no slot", step.next)
		}
	}
	b.Release(gone)
	if diff := cmp.Diff([]types.NamespacedName{late}, b.Release(early)); diff != "" {
		t.Errorf("at last (-want +got):\n%s", diff)
	}
}

// TestBudgetHolds checks for random sequences of calls that the number of running restarts never
// exceeds the limits, and that every waiting restart that could start is returned.
func TestBudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		b := New(limit, rapid.IntRange(1, 100).Draw(t, "percent"))
		running := map[types.NamespacedName]bool{}
		keys := rapid.Custom(func(t *rapid.T) types.NamespacedName {
			return key(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"))
		})
		ask := func(k types.NamespacedName, due time.Time) {
			if b.Take(k, due) {
				running[k] = true
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				ask(keys.Draw(t, "key"), at("03:00:00").Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "due"))*time.Minute))
			},
			"release": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				delete(running, k)
				for _, next := range b.Release(k) {
					due, waits := b.since[next]
					if !waits {
						t.Fatalf("%s can have a slot, but does not wait", next)
					}
					if !b.Take(next, due) {
						t.Fatalf("%s can have a slot, but does not get it", next)
					}
					running[next] = true
				}
			},
			"": func(t *rapid.T) {
				perNamespace := map[string]int{}
				for k := range running {
					perNamespace[k.Namespace]++
				}
				if len(running) > limit {
					t.Fatalf("%d run, of %d", len(running), limit)
				}
				for namespace, n := range perNamespace {
					if n > b.share {
						t.Fatalf("%d of namespace %s run, of %d", n, namespace, b.share)
					}
				}
				waiting := 0
				for namespace, in := range b.spaces {
					waiting += len(in.queue)
					if !slices.IsSortedFunc(in.queue, byTurn) || in.held+len(in.queue) == 0 || in.held != perNamespace[namespace] {
						t.Fatalf("namespace %s uses %d slots for %d, and its queue is %v", namespace, in.held, perNamespace[namespace], in.queue)
					}
				}
				if waiting != len(b.since) {
					t.Fatalf("the queues have %d, and %v wait", waiting, b.since)
				}
				if used, _, _ := b.Usage(); used != len(running) {
					t.Fatalf("%d slots are used by %d", used, len(running))
				}
			},
		})
	})
}

// TestBudgetIsFair checks that a namespace without a slot comes before a namespace with slots and a
// long queue, and that a waiting restart keeps its place if it calls Take again with another time.
func TestBudgetIsFair(t *testing.T) {
	b := New(2, 100)
	first, second := key("greedy", "1"), key("greedy", "2")
	b.Take(first, at("03:00:00"))
	b.Take(second, at("03:00:00"))
	b.Take(key("greedy", "3"), at("03:00:00"))
	b.Take(key("greedy", "4"), at("03:05:00"))
	b.Take(key("greedy", "4"), at("02:00:00"))
	b.Take(key("modest", "x"), at("03:10:00"))
	if diff := cmp.Diff([]types.NamespacedName{key("modest", "x")}, b.Release(first)); diff != "" {
		t.Errorf("next (-want +got):\n%s", diff)
	}
	b.Take(key("modest", "x"), at("03:10:00"))
	if diff := cmp.Diff([]types.NamespacedName{key("greedy", "3")}, b.Release(second)); diff != "" {
		t.Errorf("next after that (-want +got):\n%s", diff)
	}
}

// TestBudgetGoesRound checks that a restart in a third namespace gets a slot after at most one turn
// of each other namespace, although the other two namespaces use all slots, have long queues of
// restarts that have waited longer, and complete each restart immediately.
func TestBudgetGoesRound(t *testing.T) {
	b := New(2, 50)
	const queue = 20
	for i := range queue {
		for _, namespace := range []string{"evil-1", "evil-2"} {
			b.Take(key(namespace, fmt.Sprintf("%02d", i)), at("03:00:00"))
		}
	}
	modest := key("modest", "x")
	if b.Take(modest, at("03:05:00")) {
		t.Fatal("a third slot in a budget of two")
	}
	var before []types.NamespacedName
	for done := key("evil-1", "00"); len(before) < queue; {
		next := b.Release(done)
		if len(next) != 1 {
			t.Fatalf("next are %v, want one", next)
		}
		done = next[0]
		if !b.Take(done, at("03:00:00")) {
			t.Fatalf("%s is next, and does not get its slot", done)
		}
		if done == modest {
			break
		}
		before = append(before, done)
	}
	if diff := cmp.Diff([]types.NamespacedName{key("evil-1", "01")}, before); diff != "" {
		t.Errorf("what comes before it (-want +got):\n%s", diff)
	}
}

// TestBudgetPassesNobodyTwice checks for random sequences of calls that a namespace without a slot
// waits for at most one more slot of each other namespace.
func TestBudgetPassesNobodyTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(rapid.IntRange(1, 4).Draw(t, "limit"), rapid.IntRange(1, 100).Draw(t, "percent"))
		namespaces := []string{"a", "b", "c", "d"}
		// passed counts, for each waiting namespace without a slot, the slots given to each other
		// namespace while it waits.
		passed := map[string]map[string]int{}
		take := func(k types.NamespacedName, since time.Time) {
			had := b.Has(k)
			if !b.Take(k, since) || had {
				return
			}
			delete(passed, k.Namespace)
			for waits, by := range passed {
				if by[k.Namespace]++; by[k.Namespace] > 1 {
					t.Fatalf("%s was given %d slots while %s waited for its first", k.Namespace, by[k.Namespace], waits)
				}
			}
		}
		keys := rapid.Custom(func(t *rapid.T) types.NamespacedName {
			return key(rapid.SampledFrom(namespaces).Draw(t, "namespace"), rapid.SampledFrom([]string{"u", "v", "w", "x", "y", "z"}).Draw(t, "name"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				take(keys.Draw(t, "key"), at("03:00:00").Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "due"))*time.Minute))
			},
			"release": func(t *rapid.T) {
				for _, next := range b.Release(keys.Draw(t, "key")) {
					take(next, b.since[next])
				}
			},
			"": func(*rapid.T) {
				for _, namespace := range namespaces {
					in := b.spaces[namespace]
					if in == nil || in.held > 0 || len(in.queue) == 0 {
						delete(passed, namespace)
					} else if passed[namespace] == nil {
						passed[namespace] = map[string]int{}
					}
				}
			},
		})
	})
}

// TestBudgetOutlived checks that a restart that outlives its slot releases the slot, is counted,
// and gets no slot again when it is reconciled.
func TestBudgetOutlived(t *testing.T) {
	b := New(1, 100)
	slow, other := key("a", "slow"), key("b", "other")
	b.Take(slow, at("03:00:00"))
	b.Take(other, at("03:00:00"))
	if diff := cmp.Diff([]types.NamespacedName{other}, b.Outlive(slow)); diff != "" {
		t.Errorf("next (-want +got):\n%s", diff)
	}
	b.Hold(slow, time.Time{})
	if used, waiting, outlived := b.Usage(); used != 0 || waiting != 1 || outlived != 1 {
		t.Errorf("%d used, %d waiting, %d outlived; want 0, 1, 1", used, waiting, outlived)
	}
	b.Take(other, at("03:00:00"))
	b.Release(slow)
	if used, waiting, outlived := b.Usage(); used != 1 || waiting != 0 || outlived != 0 {
		t.Errorf("%d used, %d waiting, %d outlived; want 1, 0, 0", used, waiting, outlived)
	}
}
