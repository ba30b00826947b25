// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// activeRestart writes status.active, which describes the restart in progress. A restart is first
// claimed (written to status.active). Then its tick, the scheduled time, is sent to the target, or
// pods are evicted. Finally the restart ends. No other type writes status.active or its fields.
type activeRestart struct{ state *state }

// claim writes a restart for the candidate's tick (its scheduled time) to status.active, with the
// target of the spec. It returns the start time of the restart: the candidate's due time, or now if
// that is later. hash is the hash of the ConfigMaps and Secrets with which the new pods start.
func (a *activeRestart) claim(c *candidate, hash string) (starts time.Time) {
	starts = later(c.due, a.state.now)
	ref := a.state.spec.TargetRef
	a.state.status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: metav1.Time{Time: c.tick}, StartedTime: metav1.Time{Time: starts}, Trigger: c.trigger,
		TargetUID: string(a.state.target.UID), TargetRef: &ref, ConfigHash: hash,
	}
	return starts
}

// send records that the tick (the scheduled time of the restart) is sent to the target now. If the
// planned start is at least the duration late ago, the start time becomes now, since the restart
// could not make progress before. send reports whether the start time has changed.
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

// takeBack removes the restart in progress from the status, as if it had never been written there.
func (a *activeRestart) takeBack() { a.state.status.Active = nil }
