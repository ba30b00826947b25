// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidekeeper.dev/tidekeeper/internal/evictionresponder/decision"
)

// metrics holds the metric of the controller.
type metrics struct {
	responses *prometheus.CounterVec
}

// RegisterMetrics registers the metric of this package without values, so that docs/reference can
// list it.
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
