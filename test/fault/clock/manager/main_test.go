// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestSet(t *testing.T) {
	now := time.Now()
	for _, offset := range []time.Duration{0, time.Minute, -5 * time.Hour, 200 * 24 * time.Hour} {
		moved := set(now, offset)
		if wall := moved.Round(0).Sub(now.Round(0)); wall != offset {
			t.Errorf("set by %s, the wall clock moved by %s", offset, wall)
		}
		if passed := moved.Sub(now); passed != 0 {
			t.Errorf("set by %s, the monotonic clock moved by %s", offset, passed)
		}
	}
}

func TestRead(t *testing.T) {
	at := time.Date(2027, 3, 28, 1, 0, 0, 250_000_000, time.UTC)
	for range 2 {
		if got, err := read(at.Format(time.RFC3339Nano)); err != nil || got != at.Local() {
			t.Errorf("a clock that stands still at %s says %s, %v", at, got, err)
		}
	}
	before := time.Now().Add(-time.Hour).Round(0)
	if got, err := read("-1h"); err != nil || got.Round(0).Before(before) || got.Round(0).After(time.Now().Add(-time.Hour).Round(0)) {
		t.Errorf("a clock that is an hour behind says %s, %v", got, err)
	}
	if _, err := read("soon"); err == nil {
		t.Error("there is no error for a text that is neither")
	}
}
