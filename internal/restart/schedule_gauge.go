// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// scheduleGauge counts ScheduledRestarts by the reason of their condition Ready. It is updated
// after each decision, so that a scrape need not visit every object.
type scheduleGauge struct {
	gauge    *prometheus.GaugeVec
	memories *memories
}

// newScheduleGauge returns a gauge whose series for each reason is initialized to 0.
func newScheduleGauge(gauge *prometheus.GaugeVec, memories *memories) *scheduleGauge {
	for _, reason := range decision.ReadyReasons {
		gauge.WithLabelValues(reason)
	}
	s := &scheduleGauge{gauge, memories}
	memories.onForget(s.drop)
	return s
}

// set counts a ScheduledRestart under the given reason instead of its previous reason.
func (s *scheduleGauge) set(key types.NamespacedName, reason string) {
	s.memories.with(key, func(m *memory) {
		if m.reason == reason {
			return
		}
		s.drop(key, m)
		m.reason = reason
		s.gauge.WithLabelValues(reason).Inc()
	})
}

// drop removes a ScheduledRestart from the count of its reason, which is stored in its in-memory
// state m.
func (s *scheduleGauge) drop(_ types.NamespacedName, m *memory) {
	if m.reason != "" {
		s.gauge.WithLabelValues(m.reason).Dec()
	}
}
