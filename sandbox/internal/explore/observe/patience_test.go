// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"
)

// refusedTries returns n rejected attempts of a write, each of which takes the given duration.
// `wait` returns the pause after the i-th attempt.
func refusedTries(n int, took time.Duration, wait func(i int) time.Duration) []Request {
	var all []Request
	at := time.Unix(0, 0)
	for i := range n {
		all = append(all, Request{Time: at, Seconds: took.Seconds(), Verb: "update", Resource: "secrets", Namespace: "shop", Name: "a", Status: 409, Upstream: 409})
		at = at.Add(took + wait(i))
	}
	return all
}

// TestLoopsOnAnyMachine checks that the detection of hot loops depends on the ratio of waits to the
// duration of attempts, not on the speed of the machine.
func TestLoopsOnAnyMachine(t *testing.T) {
	const ms = time.Millisecond
	// back-off with a maximum of a second, which is common in operators
	capped := func(i int) time.Duration { return min(time.Second, 20*ms<<min(i, 10)) }
	held := func(i int) time.Duration { // A busy machine delays the client occasionally.
		if i%25 == 24 {
			return 5 * time.Second
		}
		return 300 * ms
	}
	for _, tc := range []struct {
		name  string
		took  time.Duration
		wait  func(int) time.Duration
		tries int
		loop  bool
	}{
		{"no waits", 2 * ms, func(int) time.Duration { return ms }, 100, true},
		{"no waits, on a slow machine", 400 * ms, held, 100, true},
		{"fewer tries", 2 * ms, func(int) time.Duration { return ms }, inRow - 1, false},
		{"ten times a second", 2 * ms, func(int) time.Duration { return 100 * ms }, 100, false},
		{"waits that double", 2 * ms, func(i int) time.Duration { return 5 * ms << min(i, 17) }, 100, false},
		{"waits up to a second", 2 * ms, capped, 100, false},
		{"waits up to a second, on a slow machine", 100 * ms, capped, 100, false},
		{"five tries, and then a wait that doubles", 5 * ms, func(i int) time.Duration {
			if i%5 == 4 {
				return 5 * ms << min(i/5, 17)
			}
			return 10 * ms
		}, 100, false},
	} {
		requests := refusedTries(tc.tries, tc.took, tc.wait)
		if lines := RefusedFast(requests, nil); tc.loop != (len(lines) == 1) {
			t.Errorf("%s: %q", tc.name, lines)
		}
		done := requests[len(requests)/2]
		done.Upstream, done.Status = 200, 200
		requests[len(requests)/2] = done
		if lines := RefusedFast(requests, nil); len(lines) > 0 {
			t.Errorf("%s, and done once: %q", tc.name, lines)
		}
	}
}

// TestUndecided checks that Undecided returns true until there are inRow attempts, the waits grow,
// or no further attempt follows.
func TestUndecided(t *testing.T) {
	const ms = time.Millisecond
	after := func(requests []Request, while time.Duration) time.Time {
		return requests[len(requests)-1].Ended().Add(while)
	}
	slow := refusedTries(20, 200*ms, func(int) time.Duration { return 100 * ms })
	if !Undecided(slow, nil, after(slow, 100*ms)) {
		t.Error("20 tries on a slow machine are no loop yet, and may become one")
	}
	if Undecided(slow, nil, after(slow, time.Minute)) {
		t.Error("it waits for a minute")
	}
	if Undecided(slow[:1], nil, after(slow[:1], ms)) {
		t.Error("one try is none that was tried again")
	}
	if many := refusedTries(inRow, 200*ms, func(int) time.Duration { return 100 * ms }); Undecided(many, nil, after(many, 100*ms)) {
		t.Error("60 tries are a loop")
	}
	if grown := refusedTries(8, 5*ms, func(i int) time.Duration { return 20 * ms << i }); Undecided(grown, nil, after(grown, ms)) {
		t.Error("its waits grow")
	}
	done := append(slow, Request{Time: after(slow, ms), Verb: "update", Resource: "secrets", Namespace: "shop", Name: "a", Status: 200, Upstream: 200})
	if Undecided(done, nil, after(done, ms)) {
		t.Error("it is done")
	}
}
