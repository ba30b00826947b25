// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label "result": the query returned no results (Open), it returned results, which
// keeps the restart from starting (Closed), or it failed (Error).
const (
	resultOpen   = "Open"
	resultClosed = "Closed"
	resultError  = "Error"
)

// Metrics holds the metrics that count and time the queries.
type Metrics struct {
	queries  *prometheus.CounterVec
	duration prometheus.Histogram
}

// NewMetrics creates and registers the metrics of the queries.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_restart_queries_total",
			Help: "Queries of --restart-queries that were asked before restarts, by the name of the query and its result (Open, Closed, Error). Without --restart-queries there are none.",
		}, []string{"query", "result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tidekeeper_restart_query_duration_seconds",
			Help:    "How long the answers to the queries of --restart-queries took.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 30},

			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}),
	}
	for _, c := range []prometheus.Collector{m.queries, m.duration} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// prepare initializes the series of a query to 0. Otherwise rate() would not show its first result.
func (m *Metrics) prepare(query string) {
	for _, result := range []string{resultOpen, resultClosed, resultError} {
		m.queries.WithLabelValues(query, result)
	}
}

func (m *Metrics) observe(query, result string, took time.Duration) {
	m.queries.WithLabelValues(query, result).Inc()
	m.duration.Observe(took.Seconds())
}
