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

// TestMissLimiter: ten thousand schedules of one namespace that miss a tick at once
// are told one after the other, each of them, and hold up nobody else.
func TestMissLimiter(t *testing.T) {
	limiter := newMissLimiter()
	missed := &decision.Output{Records: []tidekeeperv1.RestartRecord{{Trigger: tidekeeperv1.TriggerSchedule, Outcome: tidekeeperv1.OutcomeMissed}}}
	start, told := time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC), 0
	var last time.Time
	for i := range 10_000 {
		turn := limiter.turn(key("many", fmt.Sprint(i)), missed, start)
		if turn.IsZero() {
			told++
			continue
		}
		if turn.After(last) {
			last = turn
		}
	}
	if told != missesBurst {
		t.Errorf("%d are told at once, want %d", told, missesBurst)
	}
	if took := last.Sub(start); took < 30*time.Minute || took > 40*time.Minute {
		t.Errorf("the last is told after %s, want 9,900 at five a second", took)
	}
	if !limiter.turn(key("other", "x"), missed, start).IsZero() {
		t.Error("another namespace waits")
	}
	if !limiter.turn(key("many", "9999"), missed, last).IsZero() {
		t.Error("whose turn it is waits")
	}
	if !limiter.turn(key("many", "9998"), &decision.Output{Send: start}, start).IsZero() {
		t.Error("a restart waits")
	}
}
