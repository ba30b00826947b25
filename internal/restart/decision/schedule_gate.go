// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// scheduleGate keeps restarts from starting while the schedule does not run. Requested restarts
// start nevertheless.
type scheduleGate struct {
	state *state
	// scheduled is true if the ScheduledRestart has a schedule. triggers describes the other
	// triggers, such as the maximum pod age.
	scheduled bool
	triggers  func() string
}

func (g *scheduleGate) blocks(_, _ time.Time) *blocker {
	reason, message := g.state.stopped(), ""
	switch reason {
	case "":
		return nil
	case tidekeeperv1.ReasonInvalidSchedule:
		message = g.state.invalid.Error()
	case tidekeeperv1.ReasonOrphaned:
		message = orphanedMessage(g.state.spec.TargetRef)
	case tidekeeperv1.ReasonFailureLimit:
		message = fmt.Sprintf("%d restarts in a row have failed", g.state.status.ConsecutiveFailures)
	default:
		message = "it is suspended"
	}
	return &blocker{reason: reason, message: message}
}

func (g *scheduleGate) describe(at, due time.Time) Gate {
	open, triggers := "it has no upcoming tick", g.triggers()
	switch next := g.state.status.NextScheduleTime; {
	case next != nil:
		open = "the next tick is " + formatTime(next.Time)
	case !g.scheduled && triggers != "":
		open = "there is no schedule"
	}
	if triggers != "" {
		open += "; " + triggers
	}
	return describeAs(GateSchedule, g.blocks(at, due), open)
}
