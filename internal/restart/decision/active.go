// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// activeRestart writes status.active, the restart in progress. Each of its methods is a transition: a
// restart is claimed, sent or begun by evictions, and ends. Nothing else writes to status.active or its fields.
type activeRestart struct{ state *state }

// claim claims a tick for the target of the spec. The restart starts when it is due, or now if that is
// later. hash is that of the content of ConfigMaps and Secrets which its pods start with.
func (a *activeRestart) claim(c *candidate, hash string) (starts time.Time) {
	starts = later(c.due, a.state.now)
	ref := a.state.spec.TargetRef
	a.state.status.Active = &tidekeeperv1.ActiveRestart{
		ScheduledTime: metav1.Time{Time: c.tick}, StartedTime: metav1.Time{Time: starts}, Trigger: c.trigger,
		TargetUID: string(a.state.target.UID), TargetRef: &ref, ConfigHash: hash,
	}
	return starts
}

// send takes in that the tick is sent now. If that is later than planned by the given duration, the restart
// counts as started only now: nothing could progress before. It reports whether that is so.
func (a *activeRestart) send(late time.Duration) (restarted bool) {
	active := a.state.status.Active
	if a.state.now.Sub(active.StartedTime.Time) < late {
		return false
	}
	active.StartedTime = metav1.Time{Time: a.state.now}
	return true
}

// correct has the restart start now if it starts later by another clock, or by this clock before it was
// set back. Otherwise the restart would end before it began, and its deadline would be too late.
func (a *activeRestart) correct() {
	if active := a.state.status.Active; active.StartedTime.After(a.state.now) {
		active.StartedTime = metav1.Time{Time: a.state.now}
	}
}

// evict has the restart evict the pods that were created before a time.
func (a *activeRestart) evict(createdBefore time.Time) {
	a.state.status.Active.Eviction = &tidekeeperv1.ActiveEviction{CreatedBefore: metav1.Time{Time: createdBefore}}
}

// noteRefusal notes why the last eviction was refused, or that it was accepted.
func (a *activeRestart) noteRefusal(last Attempts) {
	eviction := a.state.status.Active.Eviction
	if last.Refusal != "" {
		eviction.Refused = text.Shorten(last.Refusal, tidekeeperv1.MaxRefusalLength)
	} else if last.Evicted {
		eviction.Refused = ""
	}
}

// end ends the restart, and returns it.
func (a *activeRestart) end() *tidekeeperv1.ActiveRestart {
	ended := a.state.status.Active
	a.takeBack()
	return ended
}

// takeBack takes back a claim that was not sent, as if it had never been made.
func (a *activeRestart) takeBack() { a.state.status.Active = nil }
