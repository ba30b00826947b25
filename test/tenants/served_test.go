// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// served checks that the manager serves the neighbour, and that the dashboard shows a new forecast
// of restarts. The dashboard is read in parallel, because it spends only a tenth of the time on
// forecasts.
func (n *neighbour) served(t *testing.T) {
	t.Helper()
	followed := n.page.follow(t, time.Now())
	n.servedByManager(t)
	if err := <-followed; err != nil {
		t.Fatalf("the page has no new forecast: %v", err)
	}
}

// servedByManager checks that the manager applies a change of the neighbour's pool, and that three
// of the neighbour's restarts start when it is their turn: a requested restart, a restart for the
// age of pods, and a restart for a change of the ConfigMap. Tricks that examine the manager's
// requests meanwhile call it directly, without the dashboard, which is checked after each trick.
func (n *neighbour) servedByManager(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	value := fmt.Sprint("news-", n.changes)
	cluster.Change(t, n.pool, func() { n.pool.Spec.Labels["example.com/news"] = tidekeeperv1.LabelValue(value) })
	n.laterSecond(t)
	asked := time.Now()
	cluster.Change(t, n.aged, func() { youngFrom(n.aged, asked) })
	cluster.Change(t, n.config, func() { n.config.Data["news"] = value })
	cluster.RequestRestart(t, n.api, asked)
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
	for _, r := range []*tidekeeperv1.ScheduledRestart{n.api, n.aged, n.conf} {
		record := n.completed(t, r, asked)
		if record.Outcome != tidekeeperv1.OutcomeSucceeded {
			t.Errorf("the restart of %s: %+v", r.Name, record)
		}
		w := n.waited(t, r, asked)
		if r == n.conf {
			// The restart begins only when its ConfigMap has not changed for some time, so the
			// tenant's requests before that do not count.
			w.requests = 0
		}
		w.check(t, "the restart of "+r.Name)
		t.Logf("the restart of %s was started %s after it was asked for, %s", r.Name, record.StartedTime.Sub(asked.Truncate(time.Second)), w)
	}
}

// laterSecond waits for the second after the neighbour's last restarts. Times in records are in
// whole seconds, so restarts in the same second could not be distinguished.
func (n *neighbour) laterSecond(t *testing.T) {
	t.Helper()
	framework.EventuallyWithin(t, patience, "the second of the last restarts is over", func() error {
		for _, r := range []*tidekeeperv1.ScheduledRestart{n.api, n.aged, n.conf} {
			if cluster.Refresh(t, r); len(r.Status.History) > 0 && !time.Now().Truncate(time.Second).After(r.Status.History[0].ScheduledTime.Time) {
				return fmt.Errorf("the last restart of %s was due at %s", r.Name, r.Status.History[0].ScheduledTime)
			}
		}
		return nil
	})
}

// completed waits until a restart that was requested at or after the time `asked` is complete, and
// returns its record.
func (n *neighbour) completed(t *testing.T, r *tidekeeperv1.ScheduledRestart, asked time.Time) (record tidekeeperv1.RestartRecord) {
	t.Helper()
	framework.EventuallyWithin(t, patience, "the restart of "+r.Name+" is complete", func() error {
		if cluster.Refresh(t, r); len(r.Status.History) == 0 {
			return errors.New("it has no history")
		}
		if record = r.Status.History[0]; record.ScheduledTime.Time.Before(asked.Truncate(time.Second)) {
			return fmt.Errorf("the last record is %+v, and the status %+v", record, r.Status)
		}
		return nil
	})
	return record
}

// youngFrom limits the age of pods to nearly a day, within a daily window of one hour that has just
// opened. Pods created before `at` are due for a restart, because they would become too old before
// the window opens again.
func youngFrom(r *tidekeeperv1.ScheduledRestart, at time.Time) {
	at = at.UTC().Truncate(time.Second)
	opened := at.Add(-time.Minute).Truncate(time.Minute)
	r.Spec.MaxPodAgeSeconds = int32(opened.AddDate(0, 0, 1).Sub(at) / time.Second)
	r.Spec.Windows = []tidekeeperv1.RestartWindow{{
		Schedule: tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", opened.Minute(), opened.Hour())), DurationSeconds: 3600,
	}}
}
