// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

// TestQueue checks that the longest ready suite is taken first, even if it was added last.
func TestQueue(t *testing.T) {
	t.Parallel()
	lasting := func(name string, seconds int) suite { return suite{name: name, seconds: seconds} }
	q := newQueue()
	for _, s := range []suite{lasting("short", 1), lasting("long", 9), {name: "quiet", seconds: 20, alone: true}, lasting("as short", 1)} {
		q.add(s)
	}
	q.begin()
	var got []string
	take := func() bool {
		s, more := q.next()
		if more {
			got = append(got, s.name)
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
	if len(q.alone) != 1 || q.alone[0].name != "quiet" {
		t.Errorf("%v run alone, want the quiet suite", q.alone)
	}
}
