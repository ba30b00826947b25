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
	if got := c.since("u", string(initialize), start.Add(time.Second)); !got.Equal(start) {
		t.Errorf("waits since %s, want %s", got, start)
	}
	later := start.Add(2 * time.Second)
	if got := c.since("u", string(ready), later); !got.Equal(later) {
		t.Errorf("the next step waits since %s, want %s", got, later)
	}
}
