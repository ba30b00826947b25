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

// wait is what a restart of the neighbour has waited for.
type wait struct {
	// turns are the restarts of tenants that were sent before it, and requests all that the manager
	// has asked for on behalf of tenants before its first answer about it.
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

// waited returns what a restart of the neighbour that was due at a time has waited for. Turns count
// from the first status that the manager has written about it since, from which on it has its
// place in the queue, to the last one before it was sent: that says that its turn has come.
// One whose turn came before it was due has waited for none. How long a busy machine takes for
// any of that does not count.
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
