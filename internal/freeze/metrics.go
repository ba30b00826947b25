// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// metrics counts Freezes by the reason of their condition InForce.
type metrics struct {
	gauge *prometheus.GaugeVec

	mu     sync.Mutex
	phases map[string]string
}

// RegisterMetrics registers the metrics of this package without values, so that docs/reference can
// list them.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry)
	return err
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidekeeper_freezes",
			Help: "Freezes by phase: Pending, InForce or Ended. For the restarts held back, see tidekeeper_restart_schedules and tidekeeper_restart_ticks_total with the reason Frozen. Counted by the leader; a standby has none.",
		}, []string{"phase"}),
		phases: map[string]string{},
	}
	for _, phase := range []string{tidekeeperv1.ReasonPending, tidekeeperv1.ReasonInForce, tidekeeperv1.ReasonEnded} {
		m.gauge.WithLabelValues(phase)
	}
	return m, registry.Register(m.gauge)
}

// set counts the named Freeze under the given phase instead of its previous phase. For a deleted
// Freeze, the phase is "".
func (m *metrics) set(name, phase string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.phases[name]; before != "" {
		m.gauge.WithLabelValues(before).Dec()
	}
	if phase == "" {
		delete(m.phases, name)
		return
	}
	m.phases[name] = phase
	m.gauge.WithLabelValues(phase).Inc()
}
