// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseProcessorTime(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]processorTime{
		"cpu  100 20 30 4000 5 0 7 0 0 0\ncpu0 50 10 15 2000 2 0 3 0 0 0\n": {4000, 4162},
		"cpu 1 2 3 4":      {4, 10},
		"cpu 1 2 3":        {},
		"cpu0 1 2 3 4 5\n": {},
		"cpu 1 2 3 x 5\n":  {},
		"":                 {},
	} {
		got, err := parseProcessorTime([]byte(stat))
		if failed := want == (processorTime{}); (err != nil) != failed || !failed && got != want {
			t.Errorf("%q: %+v, %v, want %+v", stat, got, err, want)
		}
	}
}

func TestAreIdle(t *testing.T) {
	t.Parallel()
	before := processorTime{idle: 1_000, total: 5_000}
	for now, want := range map[processorTime]bool{
		{idle: 1_035, total: 5_100}: true,
		{idle: 1_034, total: 5_100}: false,
		{idle: 1_100, total: 5_100}: true,
		before:                      false, // No time has passed.
	} {
		if got := areIdle(before, now); got != want {
			t.Errorf("%+v after %+v: %v, want %v", now, before, got, want)
		}
	}
}

// TestRunSpare checks that further suites are started one at a look and at most mostSpare at a time,
// only while the processors are idle, and that all of them have ended when runSpare returns.
func TestRunSpare(t *testing.T) {
	t.Parallel()
	r := newTestRunner(t)
	ready := newQueue()
	// Each suite ends after the test has written the file of its name.
	for _, name := range []string{"a", "b", "c"} {
		ready.add(shell(name, "touch begun-"+name+"; until test -e "+name+"; do sleep 0.01; done"))
	}
	ready.begin()
	times := make(chan processorTime)
	look, over, ended := make(chan time.Time), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r.runSpare(t.Context(), ready, look, over, func() (processorTime, error) {
			now, more := <-times
			if !more {
				return now, errors.New("no more")
			}
			return now, nil
		})
	}()
	at := processorTime{}
	times <- at
	// step looks at the processors after a time with the given idle share, and returns the number of
	// suites that still wait.
	step := func(idle uint64) int {
		at.idle, at.total = at.idle+idle, at.total+100
		look <- time.Time{}
		times <- at
		at.total += 100 // A busy time: after it, the effect of the last look is visible.
		look <- time.Time{}
		times <- at
		ready.mu.Lock()
		defer ready.mu.Unlock()
		return len(ready.waiting)
	}
	for i, c := range []struct {
		idle    uint64
		waiting int
	}{{10, 3}, {90, 2}, {10, 2}, {90, 1}, {90, 1}} {
		if got := step(c.idle); got != c.waiting {
			t.Errorf("look %d: %d suites wait, want %d", i, got, c.waiting)
		}
	}
	close(over)
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(r.root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	<-ended
	if s := r.book.summarize(0); !s.ok() || len(s.suites) != 2 {
		t.Errorf("%+v, want 2 suites that passed", s)
	}
}
