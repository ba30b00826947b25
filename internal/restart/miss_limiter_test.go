// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// TestMissLimiter checks that when ten thousand schedules of a namespace miss a tick at the same
// time, all missed ticks are reported one after the other, and other namespaces do not wait.
func TestMissLimiter(t *testing.T) {
	limiter := newMissLimiter(newMemories())
	missed := &decision.Output{Records: []tidekeeperv1.RestartRecord{{Trigger: tidekeeperv1.TriggerSchedule, Outcome: tidekeeperv1.OutcomeMissed}}}
	start, reported := time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC), 0
	var last time.Time
	for i := range 10_000 {
		turn := limiter.turn(key("many", fmt.Sprint(i)), missed, start)
		if turn.IsZero() {
			reported++
			continue
		}
		if turn.After(last) {
			last = turn
		}
	}
	if reported != missesBurst {
		t.Errorf("%d are reported at once, want %d", reported, missesBurst)
	}
	if took := last.Sub(start); took < 30*time.Minute || took > 40*time.Minute {
		t.Errorf("the last is reported after %s, want 9,900 at five a second", took)
	}
	if !limiter.turn(key("other", "x"), missed, start).IsZero() {
		t.Error("another namespace waits")
	}
	if !limiter.turn(key("many", "9999"), missed, last).IsZero() {
		t.Error("a schedule waits although its turn has come")
	}
	if !limiter.turn(key("many", "9998"), &decision.Output{Send: start}, start).IsZero() {
		t.Error("a restart waits")
	}
}
