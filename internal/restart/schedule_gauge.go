// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// scheduleGauge counts ScheduledRestarts by the reason of their condition Ready. It
// follows each decision, so that a scrape does not have to look at all of them.
type scheduleGauge struct {
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	reasons map[types.NamespacedName]string
}

// newScheduleGauge returns a gauge without ScheduledRestarts, with a series for each
// reason.
func newScheduleGauge(gauge *prometheus.GaugeVec) *scheduleGauge {
	for _, reason := range decision.ReadyReasons {
		gauge.WithLabelValues(reason)
	}
	return &scheduleGauge{gauge: gauge, reasons: map[types.NamespacedName]string{}}
}

// set counts a ScheduledRestart under a reason, and no longer under its previous one.
// The reason "" is for one that was deleted.
func (s *scheduleGauge) set(key types.NamespacedName, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.reasons[key]
	if before == reason {
		return
	}
	if before != "" {
		s.gauge.WithLabelValues(before).Dec()
	}
	if reason == "" {
		delete(s.reasons, key)
		return
	}
	s.reasons[key] = reason
	s.gauge.WithLabelValues(reason).Inc()
}
