// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// activeRestart writes status.active, which describes the restart in progress. Each method is a
// transition: a restart is claimed, then its tick is sent or it evicts pods, and finally it ends.
// No other type writes status.active or its fields.
type activeRestart struct{ state *state }

// claim claims the candidate's tick for the target of the spec, and returns the start time of the
// restart: the candidate's due time, or now if that is later. hash is the hash of the ConfigMaps
// and Secrets with which the new pods start.
func (a *activeRestart) claim(c *candidate, hash string) (starts time.Time) {
	starts = later(c.due, a.state.now)
	ref := a.state.spec.TargetRef
	a.state.status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: metav1.Time{Time: c.tick}, StartedTime: metav1.Time{Time: starts}, Trigger: c.trigger,
		TargetUID: string(a.state.target.UID), TargetRef: &ref, ConfigHash: hash,
	}
	return starts
}

// send records that the tick is sent now. If now is later than the planned start by at least the
// given duration, the start time becomes now, since the restart could not make progress before.
// send reports whether the start time has changed.
func (a *activeRestart) send(late time.Duration) (restarted bool) {
	active := a.state.status.Active
	if a.state.now.Sub(active.StartedTime.Time) < late {
		return false
	}
	active.StartedTime = metav1.Time{Time: a.state.now}
	return true
}

// correct moves a start time in the future to now, for example after the clock was set back.
// Otherwise the restart could end before its start, and its deadline would be too late.
func (a *activeRestart) correct() {
	if active := a.state.status.Active; active.StartedTime.After(a.state.now) {
		active.StartedTime = metav1.Time{Time: a.state.now}
	}
}

// evict turns the restart into an eviction of the pods that were created before the given time.
func (a *activeRestart) evict(createdBefore time.Time) {
	a.state.status.Active.Eviction = &tidekeeperv1.ActiveEviction{CreatedBefore: metav1.Time{Time: createdBefore}}
}

// noteRefusal records the reason for which the last eviction was rejected. It clears the reason if
// the eviction was accepted.
func (a *activeRestart) noteRefusal(last Attempts) {
	eviction := a.state.status.Active.Eviction
	if last.Refusal != "" {
		eviction.Refused = text.Shorten(last.Refusal, tidekeeperv1.MaxRefusalLength)
	} else if last.Evicted {
		eviction.Refused = ""
	}
}

// end removes the restart in progress from the status, and returns it.
func (a *activeRestart) end() *tidekeeperv1.ActiveRestart {
	ended := a.state.status.Active
	a.takeBack()
	return ended
}

// takeBack removes the restart in progress from the status, as if its tick had never been claimed.
func (a *activeRestart) takeBack() { a.state.status.Active = nil }
