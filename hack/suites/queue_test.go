// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestQueue checks that early suites are taken first, then the longest while fewer than two such suites
// run, and otherwise the shortest.
func TestQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(2, []suite{
		{name: "short", seconds: 1}, {name: "longest", seconds: 9}, {name: "as short", seconds: 1}, {name: "long", seconds: 8}, {name: "middle", seconds: 5},
		{name: "early", seconds: 3, early: true}, {name: "other", seconds: 4},
	})
	ended := map[string]func(){}
	for _, want := range []string{"early", "longest", "long", "short", "as short", "middle", "other"} {
		if want == "middle" { // A long suite ends, so that another is taken as long.
			ended["longest"]()
		}
		s, end, more := q.next()
		if !more || s.name != want {
			t.Fatalf("%q is taken, want %q", s.name, want)
		}
		ended[want] = end
	}
	if _, _, more := q.next(); more {
		t.Error("there is another suite")
	}
}
