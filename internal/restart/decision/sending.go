// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// sending is the tick to send to the target.
type sending struct {
	query *queryGate
	// freezesLive is set if the freezes were read from the API server.
	freezesLive bool
	// tick is the tick to send, begun the tick of a restart that sends none, and due the time at which the
	// restart was due.
	tick, begun, due time.Time
}

// send sends a tick whose restart was due at the given time, and returns the fact that this depends on.
func (s *sending) send(tick, due time.Time) Need {
	s.tick, s.due = tick, due
	return s.confirm(due)
}

// begin records that the status write alone starts the restart.
func (s *sending) begin(tick, due time.Time) { s.begun, s.due = tick, due }

// confirm returns the next fact that the start of a restart with the given due time depends on. Freezes are
// read from the API server last, as that read is the fastest.
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
