// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Answer is the combined answer of the administrator's Prometheus queries for a restart.
type Answer struct {
	At time.Time
	// Closed names the query that keeps the restart from starting, and the reason; "" if the
	// restart may start.
	Closed string
}

// answerLasts is the time for which an answer is valid. It is also the interval at which the
// queries are repeated for a waiting restart.
const answerLasts = 10 * time.Second

// queryGate keeps a restart from starting while a recent answer of the administrator's Prometheus
// queries says so.
type queryGate struct {
	// queried is true if the administrator has configured Prometheus queries that can keep restarts
	// from starting. answer is the last combined answer of these queries; nil if they have not been
	// run for this restart.
	queried bool
	answer  *Answer
	// ready is the condition Ready of the ScheduledRestart. It is set only in processes that cannot
	// run the queries.
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

// describe takes the answer of the queries from the condition Ready, since only the manager can run
// them.
func (g *queryGate) describe(_, _ time.Time) Gate {
	if g.ready != nil && g.ready.Reason == tidekeeperv1.ReasonClosedByQuery {
		return Gate{Name: GateQuery, Reason: g.ready.Reason, Message: g.ready.Message}
	}
	return Gate{Name: GateQuery, Open: true, Message: "nothing is known against it: the manager asks the queries of its operator, if there are any, when a restart is ready to start"}
}

// unanswered reports whether the queries must be run before a restart may start.
func (g *queryGate) unanswered() bool { return g.queried && (g.answer == nil || !g.counts()) }

// counts reports whether the last answer of the queries is less than [answerLasts] old, so that it
// can still be used.
func (g *queryGate) counts() bool {
	age := g.now.Sub(g.answer.At)
	return age >= 0 && age < answerLasts
}

// last returns a blocker if the last answer of the queries keeps the restart from starting,
// regardless of the age of the answer; nil otherwise. An answer from before the due time is
// ignored. A restart that waits for a slot shows this blocker, since the queries are run again only
// once it has a slot.
func (g *queryGate) last(due time.Time) *blocker {
	if g.answer == nil || g.answer.Closed == "" || g.answer.At.Before(due) {
		return nil
	}
	return &blocker{reason: tidekeeperv1.ReasonClosedByQuery, message: g.answer.Closed}
}
