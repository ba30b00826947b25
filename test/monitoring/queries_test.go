// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// holdsQuery returns results for a workload that must not be restarted. Its range tolerates late
// scrapes on a busy machine.
const holdsQuery = `last_over_time(holds{exporter="other's",namespace=$namespace,workload=$name}[5m]) > 0`

// TestRestartWaitsForQueries checks that a restart waits while a query about its workload returns
// results, and while Prometheus does not respond. Restarts without a query are not held back.
func TestRestartWaitsForQueries(t *testing.T) {
	var held atomic.Int64
	held.Store(1)
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "holds{exporter=\"other's\",namespace=\"default\",workload=\"held\"} %d\n", held.Load())
	}))
	defer exporter.Close()
	p := prometheus{framework.FreeAddress(t)}
	gates := p.gates(t, map[string]any{"name": "never", "query": `vector(1) > 2`}, map[string]any{"name": "holds", "query": holdsQuery})
	manager := cluster.StartManager(t, "--restart-queries="+gates)
	cluster.AddNodes(t, "gates", 1)
	all := map[string]*tidekeeperv1.ScheduledRestart{}
	for _, name := range []string{"held", "free"} {
		d := framework.Deployment(name, 1, framework.App)
		cluster.Apply(t, d)
		eventuallyAvailable(t, d)
		all[name] = scheduled(name)
		all[name].Spec.Suspend = true
		cluster.Apply(t, all[name])
	}

	t.Run("it answers", func(t *testing.T) {
		p.start(t, map[string]any{
			"global": map[string]any{"scrape_interval": "1s"},
			"scrape_configs": []any{map[string]any{
				"job_name": "holds", "fallback_scrape_protocol": "PrometheusText0.0.4",
				"static_configs": []any{map[string]any{"targets": []string{strings.TrimPrefix(exporter.URL, "http://")}}},
			}},
		})
		since := time.Now()
		framework.Eventually(t, "Prometheus has the series", func() error { return p.answered("holds", since) })
		if n := asked(t, manager); n != 0 {
			t.Errorf("at rest %v queries were asked", n)
		}
		cluster.RequestRestart(t, all["held"], time.Now())
		eventuallyClosed(t, all["held"], `closed by query holds: holds{exporter="other's"`)
		cluster.RequestRestart(t, all["free"], time.Now())
		eventuallyRestarted(t, all["free"])
		cluster.Refresh(t, all["held"])
		if len(all["held"].Status.History) > 0 {
			t.Errorf("the restart that a query holds back was decided: %+v", all["held"].Status.History)
		}
		held.Store(0)
		eventuallyRestarted(t, all["held"])
	})
	t.Run("it is gone", func(t *testing.T) {
		r := all["free"]
		cluster.Change(t, r, func() { r.Spec.StartingDeadlineSeconds = 3 })
		tick := cluster.RequestRestart(t, r, time.Now().Add(time.Second))
		const failed = "failed: dial: connect: connection refused"
		framework.Eventually(t, "it is missed", func() error {
			cluster.Refresh(t, r)
			h := r.Status.History[0]
			if !h.ScheduledTime.Time.Equal(tick) || h.Outcome != tidekeeperv1.OutcomeMissed || h.Reason != tidekeeperv1.ReasonClosedByQuery || !strings.HasSuffix(h.Message, failed) {
				return fmt.Errorf("the last record is %+v", h)
			}
			return nil
		})
	})
	metrics := manager.ReadMetrics(t)
	for _, result := range []string{"Open", "Closed", "Error"} {
		if metrics.SumOf("tidekeeper_restart_queries_total", "result", result) == 0 {
			t.Errorf("no query is counted with the result %s", result)
		}
	}
}

// asked returns the number of queries that the manager has sent to Prometheus.
func asked(t *testing.T, manager *framework.Manager) float64 {
	t.Helper()
	return manager.ReadMetrics(t).Sum("tidekeeper_restart_queries_total")
}

// eventuallyClosed waits until a restart reports that it waits for a query, with a message that
// contains `words`.
func eventuallyClosed(t *testing.T, r *tidekeeperv1.ScheduledRestart, words string) {
	t.Helper()
	framework.Eventually(t, r.Name+" waits", func() error {
		cluster.Refresh(t, r)
		if err := framework.ReadyIs(r.Status.Conditions, r.Generation, tidekeeperv1.ReasonClosedByQuery); err != nil {
			return err
		}
		for _, c := range r.Status.Conditions {
			if !strings.Contains(c.Message, words) {
				return fmt.Errorf("its condition %s says %q, want %q", c.Type, c.Message, words)
			}
		}
		return nil
	})
}

func eventuallyRestarted(t *testing.T, r *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	framework.Eventually(t, r.Name+" is restarted", func() error {
		cluster.Refresh(t, r)
		switch {
		case len(r.Status.History) == 0:
			return errors.New("it has no record")
		case r.Status.History[0].Outcome != tidekeeperv1.OutcomeSucceeded:
			return fmt.Errorf("its last record is %+v", r.Status.History[0])
		}
		return nil
	})
}
