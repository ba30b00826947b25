// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// progressGate keeps a restart from starting while another restart of the same ScheduledRestart is
// in progress.
type progressGate struct{ active *tidekeeperv1.ActiveRestart }

func (g *progressGate) blocks(_, _ time.Time) *blocker {
	if g.active == nil {
		return nil
	}
	b := &blocker{reason: tidekeeperv1.ReasonRestarting, message: fmt.Sprintf("a restart for the tick of %s is in progress", formatTime(g.active.ScheduledTime.Time))}
	if g.active.Eviction != nil && g.active.Eviction.Refused != "" {
		b.message += "; " + g.active.Eviction.Refused
	}
	return b
}

func (g *progressGate) describe(at, due time.Time) Gate {
	return describeAs(GateProgress, g.blocks(at, due), "no restart is in progress")
}
