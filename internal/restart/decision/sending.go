// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// sending holds the tick (the scheduled time of a restart) that the decision sends to the target.
type sending struct {
	query *queryGate
	// freezesLive is true if the freezes were read from the API server.
	freezesLive bool
	// tick is the tick to send; zero if none. begun is the tick of a restart by eviction, which
	// starts without sending a tick to the target; zero if none. due is the due time of the
	// restart.
	tick, begun, due time.Time
}

// send records that a tick (the scheduled time of a restart) has to be sent to the target, and when
// the restart is due. It returns the next fact that is needed before the tick may be sent, or
// NeedNothing if the tick may be sent now.
func (s *sending) send(tick, due time.Time) Need {
	s.tick, s.due = tick, due
	return s.confirm(due)
}

// begin records that a restart by eviction starts with the status write. No tick is sent to the
// target.
func (s *sending) begin(tick, due time.Time) { s.begun, s.due = tick, due }

// confirm returns the next fact that is needed to start a restart with the given due time. The
// freezes are read from the API server last, since that is the fastest read.
func (s *sending) confirm(due time.Time) Need {
	switch {
	case s.query.unanswered():
		return NeedAnswer
	case !s.freezesLive:
		s.due = due
		return NeedLiveFreezes
	default:
		return NeedNothing
	}
}
