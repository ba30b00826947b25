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
	// quiet is the name of the neighbour's pool and namespace.
	quiet = "quiet"
	// quietNodes is the number of nodes in the pool.
	quietNodes = 3
	// patience is how long the neighbour is waited for: so long that no machine is too busy. Whether
	// a tenant is in its way is not measured in seconds but in turns.
	patience = 5 * time.Minute
	// turns is how many restarts of tenants may start while one of the neighbour's is due and has
	// not started: its turn is after those that have a slot, and those of a tick's burst that may
	// come before the manager knows of a request.
	turns = 12
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
	// audit follows the manager, and sent are the restarts that it has sent so far.
	audit *framework.Audit
	sent  []framework.Request
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	cluster.AddNodes(t, quiet, quietNodes, "--pool="+quiet)
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: quiet}})
	n := &neighbour{pool: framework.Pool(quiet), since: time.Now(), audit: cluster.Audit(t, "tidekeeper/")}
	n.pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/news": "none"}
	cluster.Apply(t, n.pool)
	ours := func(template *corev1.PodTemplateSpec) {
		template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	for name, replicas := range map[string]int32{"web": 2, "api": 1, "held": 0} {
		d := workload(quiet, name, replicas, ours).(*appsv1.Deployment)
		d.Spec.Paused = name == "held"
		cluster.Apply(t, d)
	}
	n.web, n.api, n.held = restart(quiet, "web", nil), restart(quiet, "api", nil), restart(quiet, "held", nil)
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
	before := n.turnsBefore(t, n.api, requested)
	if before > turns {
		t.Errorf("%d restarts of tenants were sent before it", before)
	}
	t.Logf("the neighbour's label after %s, its restart %s after the request and %d restarts of tenants", pool.Round(time.Millisecond), record.StartedTime.Sub(tick), before)
}

// turnsBefore returns how many restarts of tenants were sent from the time when one of the
// neighbour's was due until it was sent.
func (n *neighbour) turnsBefore(t *testing.T, r *tidekeeperv1.ScheduledRestart, due time.Time) (before int) {
	t.Helper()
	for _, q := range n.audit.Requests(t) {
		if q.Verb == "patch" && q.Resource == "deployments" && q.Code < 300 {
			n.sent = append(n.sent, q)
		}
	}
	slices.SortStableFunc(n.sent, func(a, b framework.Request) int { return a.Received.Compare(b.Received) })
	for _, q := range n.sent {
		switch {
		case q.Received.Before(due):
		case slices.Contains(evil, q.Namespace):
			before++
		case q.Name == r.Name:
			return before
		}
	}
	t.Errorf("the restart of %s that was due at %s was not sent", r.Name, due.Format(time.TimeOnly))
	return before
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

// awaitTick waits until a tick is on record, and returns the records, the earliest first.
func awaitTick(t *testing.T, r *tidekeeperv1.ScheduledRestart) []tidekeeperv1.RestartRecord {
	t.Helper()
	framework.EventuallyWithin(t, patience, "a tick of "+r.Name+" is on record", func() error {
		if cluster.Refresh(t, r); len(r.Status.History) == 0 {
			return fmt.Errorf("none is: %+v", r.Status)
		}
		return nil
	})
	records := slices.Clone(r.Status.History)
	slices.Reverse(records)
	return records
}

// ticks checks that each tick of the neighbour's schedule was a restart, when it was its turn.
func (n *neighbour) ticks(t *testing.T) {
	records := awaitTick(t, n.web)
	next := n.since.Truncate(time.Minute).Add(time.Minute)
	for _, record := range records {
		tick := record.ScheduledTime.Time
		if !tick.Equal(next) {
			t.Errorf("after the tick before %s comes that of %s", next.Format(time.TimeOnly), tick.Format(time.TimeOnly))
		}
		next = tick.Add(time.Minute)
		if record.Outcome != tidekeeperv1.OutcomeSucceeded {
			t.Errorf("the tick of %s: %+v", tick.Format(time.TimeOnly), record)
			continue
		}
		before := n.turnsBefore(t, n.web, tick)
		if before > turns {
			t.Errorf("the tick of %s was sent after %d of tenants", tick.Format(time.TimeOnly), before)
		}
		t.Logf("the tick of %s started after %s and %d of tenants", tick.Format(time.TimeOnly), record.StartedTime.Sub(tick), before)
	}
	if t.Failed() {
		t.Logf("the history: %+v", n.web.Status.History)
	}
}

// deadlines checks that each tick that could not start is Missed after its deadline, with the gate
// as its reason: if it came as late as the next tick, it would have another.
func (n *neighbour) deadlines(t *testing.T) {
	for _, record := range awaitTick(t, n.held) {
		tick := record.ScheduledTime.Format(time.TimeOnly)
		if record.Outcome != tidekeeperv1.OutcomeMissed || record.Reason != "TargetPaused" {
			t.Errorf("the tick of %s: %+v", tick, record)
		}
		if after := record.CompletedTime.Sub(record.ScheduledTime.Time); after < deadline*time.Second {
			t.Errorf("the tick of %s was Missed after %s, want it after %d s", tick, after, deadline)
		}
	}
}
