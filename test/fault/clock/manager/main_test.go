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
