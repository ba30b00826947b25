// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

// LatestState is the state of the current objects. It is polled, so it is computed only after a
// change. Its zero value is ready to use, by one goroutine at a time.
type LatestState struct {
	state State
	// changed is closed when the recorder receives a version that the state does not have.
	changed <-chan struct{}
}

// Of returns the state that compute makes of a recorder's current objects. compute must always be the
// same function, and the caller must not modify the state.
func (l *LatestState) Of(r *Recorder, compute func([]Version) State) State {
	select {
	case <-l.changed:
		l.state = nil
	default:
	}
	if l.state == nil {
		l.changed = r.Next()
		l.state = compute(r.Objects())
	}
	return l.state
}
