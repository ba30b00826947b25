// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/query"
)

// metrics holds the collectors of the controller's metrics.
type metrics struct {
	ticks     *prometheus.CounterVec
	lateness  prometheus.Histogram
	duration  *prometheus.HistogramVec
	schedules *scheduleGauge
	overdue   *overdue
	storms    *storms
	queries   *query.Metrics
	evictions *evictionMetrics
}

// RegisterMetrics registers the metrics of this package without a manager, so that docs/reference
// can list them.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry, budget.New(0, 0), newMemories(), clock.RealClock{})
	return err
}

// newMetrics registers the controller's metrics, some of which read the state of the budget and the
// memories.
func newMetrics(registry prometheus.Registerer, b *budget.Budget, memories *memories, c clock.PassiveClock) (*metrics, error) {
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}
	}
	m := &metrics{
		ticks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_restart_ticks_total",
			Help: "Ticks that were decided, by trigger (Schedule, Request, Age, Change), outcome (Succeeded, Failed, Skipped, Missed) and reason.",
		}, []string{"trigger", "outcome", "reason"}),
		schedules: newScheduleGauge(prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidekeeper_restart_schedules",
			Help: "ScheduledRestarts by the reason of their condition Ready, which is the STATUS column of kubectl get scheduledrestarts. Counted by the leader; a standby has none.",
		}, []string{"reason"}), memories),
		lateness: prometheus.NewHistogram(histogram("tidekeeper_restart_start_lateness_seconds",
			"From the time at which a restart was due to the time at which it was sent to its target.",
			[]float64{.01, .05, .1, .5, 1, 5, 30, 120, 600, 3600})),
		duration: prometheus.NewHistogramVec(histogram("tidekeeper_restart_duration_seconds",
			"From the start of a restart until it completed or failed, by kind of the target and outcome.",
			[]float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600}), []string{"kind", "outcome"}),
	}
	m.overdue, m.storms = &overdue{c, memories}, &storms{memories}
	attempts := &evictionAttempts{memories}
	m.evictions = newEvictionMetrics(func() float64 { return attempts.longestRefused(c.Now()).Seconds() })
	// Initialize all series to 0. Otherwise rate() would not show the first tick of a series.
	for _, trigger := range decision.Triggers {
		for outcome, reasons := range decision.TickReasons {
			for _, reason := range reasons {
				m.ticks.WithLabelValues(string(trigger), string(outcome), reason)
			}
		}
	}
	slots := func(state, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tidekeeper_restart_" + state, Help: help,
		}, func() float64 { return float64(value()) })
	}
	for _, collector := range []prometheus.Collector{
		m.ticks, m.lateness, m.duration, m.schedules.gauge, m.overdue, m.storms, m.evictions.results, m.evictions.refused,
		slots("active", "Restarts that are in progress and use a slot of the budget.", func() int { used, _, _ := b.Usage(); return used }),
		slots("outlived", "Restarts that have been in progress for longer than --restart-slot-age, and no longer use a slot of the budget.", func() int { _, _, outlived := b.Usage(); return outlived }),
		slots("waiting_for_budget", "Restarts that are due and wait for a slot of the budget.", func() int { _, waiting, _ := b.Usage(); return waiting }),
		slots("budget", "How many restarts may be in progress at once.", func() int { return b.Limit() }),
	} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	queries, err := query.NewMetrics(registry)
	m.queries = queries
	return m, err
}
