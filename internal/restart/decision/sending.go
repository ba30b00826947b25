// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"
)

// sending is the tick that is sent to the target.
type sending struct {
	query *queryGate
	// freezesLive says that the freezes were read from the API server.
	freezesLive bool
	// tick is the tick to send, begun is the tick of a restart that sends none, and due is when the
	// restart was due.
	tick, begun, due time.Time
}

// send sends a tick whose restart was due at a time, and returns the fact that this depends on.
func (s *sending) send(tick, due time.Time) Need {
	s.tick, s.due = tick, due
	return s.confirm(due)
}

// begin takes in that a restart is begun by the write of its claim alone.
func (s *sending) begin(tick, due time.Time) { s.begun, s.due = tick, due }

// confirm returns the next fact that the start of a restart depends on which was due at a time. The API
// server is asked for freezes last, as that takes the least time.
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
