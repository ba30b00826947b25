// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestQueue checks that the longest ready suite is taken first, even if it was added last.
func TestQueue(t *testing.T) {
	t.Parallel()
	lasting := func(name string, seconds int) suite { return suite{name: name, seconds: seconds} }
	q := newQueue(1)
	for _, s := range []suite{lasting("short", 1), lasting("long", 9), lasting("as short", 1)} {
		q.add(s)
	}
	q.begin()
	var got []string
	take := func() bool {
		s, more := q.next()
		if more {
			got = append(got, s.name)
			q.ended(&s)
		}
		return more
	}
	take()
	q.add(lasting("late", 5))
	take()
	q.close()
	for take() {
	}
	if want := []string{"long", "late", "short", "as short"}; !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// TestQueueOfBusySuites checks that a suite that is not busy is taken before a longer busy suite
// while a busy suite runs.
func TestQueueOfBusySuites(t *testing.T) {
	t.Parallel()
	q := newQueue(1)
	for _, s := range []suite{
		{name: "busy", seconds: 9, busy: true}, {name: "busy, too", seconds: 8, busy: true}, {name: "idle", seconds: 2},
		{name: "idle, too", seconds: 1}, {name: "the last", seconds: 7, busy: true},
	} {
		q.add(s)
	}
	q.close()
	for i, want := range []string{"busy", "idle", "busy, too", "idle, too", "the last"} {
		s, more := q.next()
		if !more || s.name != want {
			t.Fatalf("%q is taken, want %q", s.name, want)
		}
		if i == 1 { // The first busy suite ends, so that another may run.
			q.ended(&suite{busy: true})
		}
	}
	if _, more := q.next(); more {
		t.Error("there is another suite")
	}
}

// TestQueueWhileProgramsAreBuilt checks that a second suite is taken only after the first has ended,
// or after all suites have been added.
func TestQueueWhileProgramsAreBuilt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(3)
		for _, name := range []string{"first", "second", "third", "fourth"} {
			q.add(suite{name: name})
		}
		q.begin()
		taken := make(chan suite, 4)
		for range 4 {
			go func() {
				s, _ := q.next()
				taken <- s
			}()
		}
		running := func(want int, when string) {
			t.Helper()
			if synctest.Wait(); len(taken) != want {
				t.Errorf("%d suites run %s, want %d", len(taken), when, want)
			}
		}
		running(1, "at first")
		first := <-taken
		q.ended(&first)
		running(1, "after the first has ended")
		q.close()
		running(3, "after all have been added")
	})
}
