// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

const (
	// quiet is the name of the neighbour's pool and namespace, and still that of another namespace,
	// after those of tenants by name. In none of them two restarts are due at once: of a
	// namespace with a slot, the second restart comes after those of namespaces without.
	quiet, still = "quiet", "still"
	// quietNodes is the number of nodes in the pool.
	quietNodes = 3
	// patience is how long the neighbour is waited for: so long that no machine is too busy. Whether
	// a tenant is in its way is not measured in seconds but in turns.
	patience = 5 * time.Minute
	// turns is how many restarts of tenants may be sent from when the manager knows that one of the
	// neighbour's is due until its turn has come: those that have a slot, one of each namespace
	// without a slot, and as many in the slots beside it while its turn is written.
	turns = 4 * slots
	// deadline is the deadline of the ticks that cannot start.
	deadline = 20
)

// neighbour is a well-behaved tenant with a pool and three schedules.
type neighbour struct {
	pool *tidekeeperv1.NodePool
	// web is restarted every minute, and api on request. held is paused, so its ticks are
	// Missed at their deadline.
	web, api, held *tidekeeperv1.ScheduledRestart
	changes        int
	since          time.Time
	// audit follows the manager, and requests are all that it has sent so far, as the API server
	// has received them.
	audit    *framework.Audit
	requests []framework.Request
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	cluster.AddNodes(t, quiet, quietNodes, "--pool="+quiet)
	for _, namespace := range []string{quiet, still} {
		cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	n := &neighbour{pool: framework.Pool(quiet), since: time.Now(), audit: cluster.Audit(t, "tidekeeper/")}
	n.pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/news": "none"}
	cluster.Apply(t, n.pool)
	ours := func(template *corev1.PodTemplateSpec) {
		template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	n.web, n.api, n.held = restart(still, "web", nil), restart(quiet, "api", nil), restart(quiet, "held", nil)
	for r, replicas := range map[*tidekeeperv1.ScheduledRestart]int32{n.web: 2, n.api: 1, n.held: 0} {
		d := workload(r.Namespace, r.Name, replicas, ours).(*appsv1.Deployment)
		d.Spec.Paused = r == n.held
		cluster.Apply(t, d)
	}
	n.api.Spec.Suspend = true
	n.held.Spec.StartingDeadlineSeconds = deadline
	for _, r := range []*tidekeeperv1.ScheduledRestart{n.web, n.api, n.held} {
		r.Spec.HistoryLimit = 50
		cluster.Apply(t, r)
	}
	return n
}

// served checks that the neighbour's pool applies a change, and that a requested restart runs when
// it is its turn.
func (n *neighbour) served(t *testing.T) {
	t.Helper()
	n.changes++
	value := fmt.Sprint("news-", n.changes)
	start := time.Now()
	cluster.Change(t, n.pool, func() { n.pool.Spec.Labels["example.com/news"] = tidekeeperv1.LabelValue(value) })
	framework.EventuallyWithin(t, patience, "the neighbour's nodes have the new label, and its pool is Healthy", func() error {
		nodes := &corev1.NodeList{}
		if err := cluster.List(t.Context(), nodes, client.MatchingLabels{"example.com/news": value}); err != nil {
			return err
		}
		if len(nodes.Items) != quietNodes {
			return fmt.Errorf("%d nodes have it", len(nodes.Items))
		}
		cluster.Refresh(t, n.pool)
		return framework.ReadyIs(n.pool.Status.Conditions, n.pool.Generation, "Healthy")
	})
	pool := time.Since(start)

	requested := time.Now()
	tick := cluster.RequestRestart(t, n.api, requested)
	var record *tidekeeperv1.RestartRecord
	framework.EventuallyWithin(t, patience, "the restart that the neighbour requested is complete", func() error {
		cluster.Refresh(t, n.api)
		if record = recordOf(n.api, tick); record == nil {
			ready := framework.ReadyIs(n.api.Status.Conditions, n.api.Generation, "Suspended")
			return fmt.Errorf("there is no record (%w)", ready)
		}
		return nil
	})
	if record.Outcome != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("the restart that the neighbour requested: %+v", record)
	}
	w := n.waited(t, n.api, requested)
	w.check(t, "the requested restart")
	t.Logf("the neighbour's label after %s, its restart %s after the request, %s", pool.Round(time.Millisecond), record.StartedTime.Sub(tick), w)
}

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

// recordOf returns the record of a tick.
func recordOf(r *tidekeeperv1.ScheduledRestart, tick time.Time) *tidekeeperv1.RestartRecord {
	for i := range r.Status.History {
		if record := &r.Status.History[i]; record.ScheduledTime.Time.Equal(tick) {
			return record
		}
	}
	return nil
}

// awaitTick waits until the latest tick on record has an outcome, and returns the records, the earliest
// first.
func awaitTick(t *testing.T, r *tidekeeperv1.ScheduledRestart, outcome tidekeeperv1.Outcome) []tidekeeperv1.RestartRecord {
	t.Helper()
	framework.EventuallyWithin(t, patience, fmt.Sprintf("the latest tick of %s is %s", r.Name, outcome), func() error {
		if cluster.Refresh(t, r); len(r.Status.History) == 0 || r.Status.History[0].Outcome != outcome {
			return fmt.Errorf("it is not: %+v", r.Status)
		}
		return nil
	})
	records := slices.Clone(r.Status.History)
	slices.Reverse(records)
	return records
}

// ticks checks that each tick of the neighbour's schedule was a restart, when it was its turn. On a
// machine that is so busy that the restart of a tick takes longer than a minute, later ones are one
// restart together.
func (n *neighbour) ticks(t *testing.T) {
	records := awaitTick(t, n.web, tidekeeperv1.OutcomeSucceeded)
	next := n.since.Truncate(time.Minute).Add(time.Minute)
	var due time.Time
	for _, record := range records {
		tick := record.ScheduledTime.Time
		if first := tick.Add(-time.Duration(record.EarlierTicks) * time.Minute); !first.Equal(next) {
			t.Errorf("after the tick before %s comes that of %s", next.Format(time.TimeOnly), first.Format(time.TimeOnly))
		}
		next = tick.Add(time.Minute)
		if due.IsZero() {
			due = tick
		}
		switch {
		case record.Outcome == tidekeeperv1.OutcomeMissed && (record.Reason == tidekeeperv1.ReasonSuperseded || record.Reason == tidekeeperv1.ReasonBudgetExhausted):
			// The turns of the tick that was sent count from when this one was due.
			t.Logf("the tick of %s was one with the next: %s", tick.Format(time.TimeOnly), record.Message)
		case record.Outcome != tidekeeperv1.OutcomeSucceeded:
			t.Errorf("the tick of %s: %+v", tick.Format(time.TimeOnly), record)
		default:
			w := n.waited(t, n.web, due)
			due = time.Time{}
			w.check(t, "the tick of "+tick.Format(time.TimeOnly))
			t.Logf("the tick of %s started after %s, %s", tick.Format(time.TimeOnly), record.StartedTime.Sub(tick), w)
		}
	}
	if t.Failed() {
		t.Logf("the history: %+v", n.web.Status.History)
	}
}

// deadlines checks that each tick that could not start is Missed after its deadline, with the gate
// as its reason: if it came as late as the next tick, it would have another.
func (n *neighbour) deadlines(t *testing.T) {
	for _, record := range awaitTick(t, n.held, tidekeeperv1.OutcomeMissed) {
		tick := record.ScheduledTime.Format(time.TimeOnly)
		if record.Outcome != tidekeeperv1.OutcomeMissed || record.Reason != "TargetPaused" {
			t.Errorf("the tick of %s: %+v", tick, record)
		}
		if after := record.CompletedTime.Sub(record.ScheduledTime.Time); after < deadline*time.Second {
			t.Errorf("the tick of %s was Missed after %s, want it after %d s", tick, after, deadline)
		}
	}
}
