// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// tally counts ScheduledRestarts by the reason of their condition Ready. It is
// told of each as it is decided about, so that a scrape looks at none of them.
type tally struct {
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	reasons map[types.NamespacedName]string
}

// newTally makes a tally of nothing, with a series for each reason.
func newTally(gauge *prometheus.GaugeVec) *tally {
	for _, reason := range readyReasons {
		gauge.WithLabelValues(reason)
	}
	return &tally{gauge: gauge, reasons: map[types.NamespacedName]string{}}
}

// set counts a ScheduledRestart under a reason, and no more under the one
// before; the reason "" is for one that is gone.
func (t *tally) set(key types.NamespacedName, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.reasons[key]
	if before == reason {
		return
	}
	if before != "" {
		t.gauge.WithLabelValues(before).Dec()
	}
	if reason == "" {
		delete(t.reasons, key)
		return
	}
	t.reasons[key] = reason
	t.gauge.WithLabelValues(reason).Inc()
}
