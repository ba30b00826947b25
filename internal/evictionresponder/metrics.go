// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidekeeper.dev/tidekeeper/internal/evictionresponder/decision"
)

// metrics holds the counter of completed responses to Evictions.
type metrics struct {
	responses *prometheus.CounterVec
}

// RegisterMetrics registers this package's metrics without values. It is used to generate
// docs/reference.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry)
	return err
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{responses: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidekeeper_eviction_responses_total",
		Help: "Completed responses to Evictions, by outcome: Gone, Declined or Failed.",
	}, []string{"outcome"})}
	for _, outcome := range decision.Outcomes {
		m.responses.WithLabelValues(string(outcome))
	}
	return m, registry.Register(m.responses)
}
