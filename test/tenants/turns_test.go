// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"slices"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// wait counts the hostile tenant's restarts and requests that came before a restart of the
// neighbour.
type wait struct {
	// turns is the number of the hostile tenant's restarts that were sent before the neighbour's
	// restart. requests is the number of requests that the manager sent on behalf of the hostile
	// tenant before its first write for the neighbour's restart.
	turns, requests int
}

func (w wait) String() string {
	return fmt.Sprintf("%d restarts and %d requests of tenants", w.turns, w.requests)
}

func (w wait) check(t *testing.T, of string) {
	t.Helper()
	if w.requests > mostRequests {
		t.Errorf("%d requests were sent on behalf of tenants before the manager began with %s, want at most %d", w.requests, of, mostRequests)
	}
	if w.turns > turns {
		t.Errorf("%d restarts of tenants were sent before %s, want at most %d", w.turns, of, turns)
	}
}

// waited returns the wait of a restart of the neighbour that was due at the given time. Turns count
// from the manager's first status write for the restart, which puts it into the queue, to the last
// status write before it was sent, which records that its turn has come. A restart whose turn came
// before it was due has waited for no turns. The speed of the machine does not matter.
func (n *neighbour) waited(t *testing.T, r *tidekeeperv1.ScheduledRestart, due time.Time) (w wait) {
	t.Helper()
	n.requests = append(n.requests, n.audit.Requests(t)...)
	slices.SortStableFunc(n.requests, func(a, b framework.Request) int { return a.Received.Compare(b.Received) })
	noticed, since := false, 0
	for _, q := range n.requests {
		ofTenant, isSent := slices.Contains(evil, q.Namespace), q.Verb == "patch" && q.Resource == "deployments" && q.Code < 300
		switch about := q.Namespace == r.Namespace && q.Name == r.Name; {
		case q.Received.Before(due):
		case about && isSent:
			return w
		case about && q.Resource == "scheduledrestarts" && q.Subresource == "status" && q.Code < 300:
			noticed, w.turns = true, since
		case ofTenant && isSent && noticed:
			since++
		case ofTenant && !noticed:
			w.requests++
		}
	}
	t.Errorf("the restart of %s that was due at %s was not sent", r.Name, due.Format(time.TimeOnly))
	return w
}
