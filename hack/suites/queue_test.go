// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

// TestQueue checks that the longest suite is taken first.
func TestQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(1, []suite{{name: "short", seconds: 1}, {name: "long", seconds: 9}, {name: "as short", seconds: 1}, {name: "last", seconds: 5}})
	var got []string
	for s, more := q.next(); more; s, more = q.next() {
		got = append(got, s.name)
	}
	if want := []string{"long", "last", "short", "as short"}; !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// TestQueueOfBusySuites checks that a suite that is not busy is taken before a longer busy suite
// while a busy suite runs.
func TestQueueOfBusySuites(t *testing.T) {
	t.Parallel()
	q := newQueue(1, []suite{
		{name: "busy", seconds: 9, busy: true}, {name: "busy, too", seconds: 8, busy: true}, {name: "idle", seconds: 2},
		{name: "idle, too", seconds: 1}, {name: "the last", seconds: 7, busy: true},
	})
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
