// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Answer is what the queries of the manager's operator said about a restart.
type Answer struct {
	At time.Time
	// Closed says which of them keeps the restart from being started, and why; empty if none
	// does.
	Closed string
}

// answerLasts is how long an answer counts. It is also how often the queries are asked about a
// restart that they hold back.
const answerLasts = 10 * time.Second

// unanswered reports whether the queries have to be asked before a tick is sent.
func (d *decider) unanswered() bool {
	return d.in.Queried && (d.in.Answer == nil || !d.counts())
}

// counts reports whether the last answer still counts.
func (d *decider) counts() bool {
	age := d.in.Now.Sub(d.in.Answer.At)
	return age >= 0 && age < answerLasts
}

// closedByQuery returns a blocker while the answer counts that keeps a restart from being started.
func (d *decider) closedByQuery() *blocker {
	if b := d.lastClosed(time.Time{}); b != nil && d.counts() {
		b.again = d.in.Answer.At.Add(answerLasts)
		return b
	}
	return nil
}

// lastClosed returns what a query had against the restart when it was asked last, or nil. It is
// what a restart waits for until it is asked again, which takes a slot. An answer of before the
// restart was due says nothing about it.
func (d *decider) lastClosed(due time.Time) *blocker {
	if d.in.Answer == nil || d.in.Answer.Closed == "" || d.in.Answer.At.Before(due) {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonClosedByQuery, message: d.in.Answer.Closed}
}

// queryGate takes what the queries say from the status, as only the manager can ask them.
func (d *decider) queryGate() Gate {
	ready := meta.FindStatusCondition(d.in.Restart.Status.Conditions, tidekeeperv1.ConditionReady)
	if ready != nil && ready.Reason == tidekeeperv1.ReasonClosedByQuery {
		return Gate{Name: GateQuery, Reason: ready.Reason, Message: ready.Message}
	}
	return Gate{Name: GateQuery, Open: true, Message: "nothing is known against it: the manager asks the queries of its operator, if there are any, when a restart is ready to start"}
}
