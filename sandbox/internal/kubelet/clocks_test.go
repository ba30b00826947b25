// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"
)

func TestClockGoesOnWhileTheStepIsTheSame(t *testing.T) {
	c := newClocks()
	start := time.Unix(100, 0)
	c.since("u", string(initialize), start)
	if got, first := c.since("u", string(initialize), start.Add(time.Second)); !got.Equal(start) || first {
		t.Errorf("waits since %s (first seen: %t), want %s", got, first, start)
	}
	later := start.Add(2 * time.Second)
	if got, first := c.since("u", string(ready), later); !got.Equal(later) || !first {
		t.Errorf("the next step waits since %s (first seen: %t), want %s", got, first, later)
	}
	if last := c.forget("u"); last != string(ready) {
		t.Errorf("waited last for %q, want %s", last, ready)
	}
}
