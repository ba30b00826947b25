// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"maps"
	"math/bits"
	"net/http"
	"slices"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// extraWrites is how many more writes of one object a run may take than an undisturbed
// run. The maximum observed is two, for a status that changes twice in a moment.
const extraWrites = 3

// mostRefused is how many writes of one object may be refused in a run of that
// duration. While a watch is frozen, the manager does not see the write that caused a
// conflict, and retries after 50 ms, then after twice as long and so on.
func mostRefused(took time.Duration) int {
	return bits.Len64(uint64(took/(50*time.Millisecond))) + 2
}

// count is how many writes of an object the API server has accepted and how many it
// has refused, mostly because another client was faster.
type count struct{ accepted, refused int }

// countWrites counts writes by object.
func countWrites(passed []framework.Passed, anonymous func(string) string) map[string]count {
	counts := map[string]count{}
	for _, write := range passed {
		object := write.Resource + " " + anonymous(write.Name)
		c := counts[object]
		switch {
		case write.Upstream >= http.StatusBadRequest:
			c.refused++
		case write.Upstream != 0:
			c.accepted++
		}
		counts[object] = c
	}
	return counts
}

// excess returns the largest number of extra writes compared with an undisturbed run
// and the largest number of refused writes of any object, and a line for each object
// with too many of them.
func excess(now, undisturbed map[string]count, took time.Duration) (more, refused int, broken []string) {
	for _, object := range slices.Sorted(maps.Keys(now)) {
		c := now[object]
		extra := c.accepted - undisturbed[object].accepted
		more, refused = max(more, extra), max(refused, c.refused)
		if extra > extraWrites {
			broken = append(broken, fmt.Sprintf("too many writes: %s was written %d times, %d more than undisturbed", object, c.accepted, extra))
		}
		if most := mostRefused(took); c.refused > most {
			broken = append(broken, fmt.Sprintf("too many writes: %s was refused %d times in %s, more than %d", object, c.refused, took.Round(time.Millisecond), most))
		}
	}
	return more, refused, broken
}

// failedRequests returns how many requests did not succeed: each may fail a reconcile.
func failedRequests(passed []framework.Passed) int {
	failed := 0
	for _, p := range passed {
		if p.Event == "" && (p.Status == 0 || p.Status >= http.StatusBadRequest) {
			failed++
		}
	}
	return failed
}

func TestExcess(t *testing.T) {
	write := func(name string, upstream int) framework.Passed {
		return framework.Passed{Verb: "patch", Resource: "nodes", Name: name, Upstream: upstream}
	}
	same := func(name string) string { return name }
	usual := countWrites([]framework.Passed{write("a", 200), write("b", 200)}, same)
	for name, test := range map[string]struct {
		passed        []framework.Passed
		more, refused int
		broken        int
	}{
		"as usual":           {[]framework.Passed{write("a", 200), write("b", 200)}, 0, 0, 0},
		"one instead of two": {[]framework.Passed{write("a", 200), write("a", 200)}, 1, 0, 0},
		"never sent":         {slices.Repeat([]framework.Passed{write("a", 0)}, 20), 0, 0, 0},
		"too many of one":    {slices.Repeat([]framework.Passed{write("a", 200)}, 5), 4, 0, 1},
		"of another":         {slices.Repeat([]framework.Passed{write("c", 200)}, 4), 4, 0, 1},
		"refused":            {slices.Repeat([]framework.Passed{write("a", 409)}, 7), 0, 7, 0},
		"a storm":            {slices.Repeat([]framework.Passed{write("a", 409)}, 8), 0, 8, 1},
	} {
		more, refused, broken := excess(countWrites(test.passed, same), usual, time.Second)
		if more != test.more || refused != test.refused || len(broken) != test.broken {
			t.Errorf("%s: %d more, %d refused, %q", name, more, refused, broken)
		}
	}
}
