// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// freezeGate keeps restarts from starting while a freeze is in force.
type freezeGate struct{ freezes []period.Period }

func (g *freezeGate) blocks(at, _ time.Time) *blocker {
	p := period.InForce(g.freezes, at)
	if p == nil {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonFrozen, message: p.String(), until: p.Until}
}

func (g *freezeGate) describe(at, due time.Time) Gate {
	return describeAs(GateFreeze, g.blocks(at, due), "no Freeze is in force")
}

// freezeWatch schedules the next decision for cases in which a freeze may be lifted without an
// event.
type freezeWatch struct {
	// live is true if the freezes were read from the API server. shared is the time for which these
	// freezes are then reused.
	live   bool
	shared time.Duration
	// confirmed is the time for which a cached freeze is trusted to be still in force.
	confirmed time.Duration
}

// wake schedules the next decision for the time at which the freezes must be checked again. sends
// is true if the decision sends a tick to the target. frozen is true if a freeze blocks the
// restart.
func (w *freezeWatch) wake(alarm *alarm, now time.Time, sends, frozen bool) {
	if w.live && !sends && w.shared > 0 {
		// A freeze that was read from the API server may not be in the cache yet. If it is lifted
		// before the cache shows it, no event follows.
		alarm.set(now.Add(w.shared))
	}
	if frozen && w.confirmed > 0 {
		// Repeat the decision, since there may be no event when the freeze is lifted.
		alarm.set(now.Add(w.confirmed))
	}
}
