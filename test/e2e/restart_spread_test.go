// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestSpreadKeepsItsPlace checks that a recreated ScheduledRestart keeps its place in the spread,
// and that the status shows the start time in advance.
func TestSpreadKeepsItsPlace(t *testing.T) {
	cluster.StartManager(t)
	place := func(name string) time.Duration {
		t.Helper()
		r := restartOf("Deployment", name)
		r.Spec.Suspend, r.Spec.Schedule, r.Spec.SpreadSeconds = false, "0 0 29 2 *", 86400
		cluster.Apply(t, r)
		eventuallyRestart(t, r, framework.Patience, "says when it starts", func() error {
			if r.Status.NextScheduleTime == nil || r.Status.NextStartTime == nil {
				return errors.New("not yet")
			}
			return nil
		})
		offset := r.Status.NextStartTime.Sub(r.Status.NextScheduleTime.Time)
		if offset < 0 || offset >= 24*time.Hour {
			t.Errorf("%s starts %s after its tick", name, offset)
		}
		cluster.Delete(t, r)
		eventuallyGone(t, r)
		return offset
	}
	first, again, other := place("spread-a"), place("spread-a"), place("spread-b")
	if first != again || first == other {
		t.Errorf("it starts %s after its tick, when created again %s, and another one %s", first, again, other)
	}
}
