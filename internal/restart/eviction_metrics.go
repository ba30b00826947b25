// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidekeeper.dev/tidekeeper/internal/kube/eviction"
)

// evictionMetrics holds the metrics of restarts that evict pods.
type evictionMetrics struct {
	results *prometheus.CounterVec
	refused prometheus.GaugeFunc
}

// newEvictionMetrics returns the metrics of evictions. refused must return the longest time in
// seconds for which all evictions for a restart have been rejected.
func newEvictionMetrics(refused func() float64) *evictionMetrics {
	m := &evictionMetrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_restart_evictions_total",
			Help: "Evictions of pods that restarts have asked for, by result: Accepted, Refused (mostly by a PodDisruptionBudget), Gone (there was no such pod any more), Error.",
		}, []string{"result"}),
		refused: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tidekeeper_restart_evictions_refused_seconds",
			Help: "For how long the evictions of a restart in progress have been refused one after the other: the longest of all restarts, 0 if none is refused.",
		}, refused),
	}
	// Initialize all series to 0. Otherwise rate() would not show the first eviction of a series.
	for _, result := range eviction.Results {
		m.results.WithLabelValues(string(result))
	}
	return m
}

func (m *evictionMetrics) count(result eviction.Result) {
	m.results.WithLabelValues(string(result)).Inc()
}
