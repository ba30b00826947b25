// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Answer is the answer of the manager's operator's queries about a restart.
type Answer struct {
	At time.Time
	// Closed names the query that keeps the restart from being started, and says why; empty if no
	// query does.
	Closed string
}

// answerLasts is how long an answer counts. It is also how often the queries are asked about a
// restart that they hold back.
const answerLasts = 10 * time.Second

// queryGate is closed while an answer counts that keeps a restart from being started.
type queryGate struct {
	// queried says that there are queries, and answer is their last answer; nil if they were not asked.
	queried bool
	answer  *Answer
	// ready is the condition Ready, for a process that cannot ask the queries.
	ready *metav1.Condition
	now   time.Time
}

func (g *queryGate) blocks(_, _ time.Time) *blocker {
	if b := g.last(time.Time{}); b != nil && g.counts() {
		b.again = g.answer.At.Add(answerLasts)
		return b
	}
	return nil
}

// describe takes the answer from the condition, as only the manager can ask the queries.
func (g *queryGate) describe(_, _ time.Time) Gate {
	if g.ready != nil && g.ready.Reason == tidekeeperv1.ReasonClosedByQuery {
		return Gate{Name: GateQuery, Reason: g.ready.Reason, Message: g.ready.Message}
	}
	return Gate{Name: GateQuery, Open: true, Message: "nothing is known against it: the manager asks the queries of its operator, if there are any, when a restart is ready to start"}
}

// unanswered reports whether the queries have to be asked before a tick is sent.
func (g *queryGate) unanswered() bool { return g.queried && (g.answer == nil || !g.counts()) }

// counts reports whether the last answer still counts.
func (g *queryGate) counts() bool {
	age := g.now.Sub(g.answer.At)
	return age >= 0 && age < answerLasts
}

// last returns the blocker of the last answer, or nil, however old the answer is: a restart waits for
// it until the queries are asked again, which takes a slot. An answer from before the restart was due
// says nothing about it.
func (g *queryGate) last(due time.Time) *blocker {
	if g.answer == nil || g.answer.Closed == "" || g.answer.At.Before(due) {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonClosedByQuery, message: g.answer.Closed}
}
