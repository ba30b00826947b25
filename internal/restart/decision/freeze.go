// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// frozen returns a blocker if a freeze is in force at a time.
func (d *decider) frozen(at time.Time) *blocker {
	p := period.InForce(d.in.Freezes, at)
	if p == nil {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonFrozen, message: p.String(), until: p.Until}
}

// frozenMessage says what a tick waits for that a freeze holds back.
func (d *decider) frozenMessage() string {
	message := "a restart is due and waits for " + d.waitsFor.message
	if !d.waitsUntil.IsZero() && d.waitsUntil.Before(d.waitsFor.until) && d.quietUntil().IsZero() {
		message += "; its deadline is before that, at " + formatTime(d.waitsUntil)
	}
	return message
}

// sendNow sends a tick whose restart was due at a time, unless a query or the API server has
// something against it. What the API server has is asked last, as it takes the least time.
func (d *decider) sendNow(tick, due time.Time) {
	d.out.Send, d.out.Due = tick, due
	switch {
	case d.unanswered():
		d.out.Needs = NeedAnswer
	case !d.in.FreezesLive:
		d.out.Needs = NeedLiveFreezes
	}
}
