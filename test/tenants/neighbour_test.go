// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
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
	// soon is how long a change of the pool may take, on a busy machine.
	soon = 10 * time.Second
	// late is how late a restart may start: all slots may be in use when it is requested,
	// and are then released at their maximum age.
	late = slotAge + soon
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
}

func newNeighbour(t *testing.T) *neighbour {
	t.Helper()
	cluster.AddNodes(t, quiet, quietNodes, "--pool="+quiet)
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: quiet}})
	n := &neighbour{pool: framework.Pool(quiet), since: time.Now()}
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
	n.web.Spec.StartingDeadlineSeconds = 45
	n.api.Spec.Suspend = true
	n.held.Spec.StartingDeadlineSeconds = deadline
	for _, r := range []*tidekeeperv1.ScheduledRestart{n.web, n.api, n.held} {
		r.Spec.HistoryLimit = 50
		cluster.Apply(t, r)
	}
	return n
}

// served checks that the neighbour's pool applies a change within seconds, and that a
// requested restart runs.
func (n *neighbour) served(t *testing.T) {
	t.Helper()
	n.changes++
	value := fmt.Sprint("news-", n.changes)
	start := time.Now()
	cluster.Change(t, n.pool, func() { n.pool.Spec.Labels["example.com/news"] = tidekeeperv1.LabelValue(value) })
	framework.EventuallyWithin(t, soon, "the neighbour's nodes have the new label, and its pool is Healthy", func() error {
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

	tick := cluster.RequestRestart(t, n.api, time.Now())
	var record *tidekeeperv1.RestartRecord
	framework.EventuallyWithin(t, late+soon, "the restart that the neighbour requested is complete", func() error {
		cluster.Refresh(t, n.api)
		if record = recordOf(n.api, tick); record == nil {
			ready := framework.ReadyIs(n.api.Status.Conditions, n.api.Generation, "Suspended")
			return fmt.Errorf("there is no record (%w)", ready)
		}
		return nil
	})
	if record.Outcome != tidekeeperv1.OutcomeSucceeded {
		t.Errorf("the restart that the neighbour requested: %+v", record)
	} else if waited := record.StartedTime.Sub(tick); waited > late {
		t.Errorf("it started after %s", waited)
	} else {
		t.Logf("the neighbour's label after %s, its restart after %s", pool.Round(time.Millisecond), waited)
	}
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

// settledTicks returns the minutes since the start whose ticks must be settled by now.
// It waits for the first.
func (n *neighbour) settledTicks() (ticks []time.Time) {
	first := n.since.Truncate(time.Minute).Add(time.Minute)
	time.Sleep(time.Until(first.Add(late + soon + time.Second)))
	for tick := n.since.Truncate(time.Minute).Add(time.Minute); time.Since(tick) > late+soon; tick = tick.Add(time.Minute) {
		ticks = append(ticks, tick)
	}
	return ticks
}

// ticks checks that each tick of the neighbour's schedule was a restart, and on time.
func (n *neighbour) ticks(t *testing.T) {
	cluster.Refresh(t, n.web)
	for _, tick := range n.settledTicks() {
		record := recordOf(n.web, tick)
		if record == nil || record.Outcome != tidekeeperv1.OutcomeSucceeded {
			t.Errorf("the tick of %s: %+v", tick.Format(time.TimeOnly), record)
		} else if lateness := record.StartedTime.Sub(tick); lateness > late {
			t.Errorf("the tick of %s started %s late", tick.Format(time.TimeOnly), lateness)
		} else {
			t.Logf("the tick of %s started %s late", tick.Format(time.TimeOnly), lateness)
		}
	}
	if t.Failed() {
		t.Logf("the history: %+v", n.web.Status.History)
	}
}

// deadlines checks that each tick that could not start is Missed, with the gate as its
// reason and soon after its deadline.
func (n *neighbour) deadlines(t *testing.T) {
	cluster.Refresh(t, n.held)
	for _, tick := range n.settledTicks() {
		record := recordOf(n.held, tick)
		if record == nil || record.Outcome != tidekeeperv1.OutcomeMissed || record.Reason != "TargetPaused" {
			t.Errorf("the tick of %s: %+v", tick.Format(time.TimeOnly), record)
		} else if after := record.CompletedTime.Sub(tick); after < deadline*time.Second || after > deadline*time.Second+soon {
			t.Errorf("the tick of %s was Missed after %s, want it after %d s", tick.Format(time.TimeOnly), after, deadline)
		}
	}
}
