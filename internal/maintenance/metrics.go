// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/eviction"
)

// metrics holds the metrics of the controllers "node-maintenance" and "node-drain".
type metrics struct {
	nodes     *prometheus.GaugeVec
	evictions *prometheus.CounterVec
	drains    prometheus.Histogram
}

// RegisterMetrics registers the metrics of this package without values, so that docs/reference can
// list them.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry)
	return err
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		nodes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidekeeper_maintenance_nodes",
			Help: "Nodes of the current round of each NodeMaintenance by phase: Draining, Drained, Returning, Done, Failed or Released. Failed does not count failures before the last edit of the spec. Counted by the leader; a standby has none.",
		}, []string{"maintenance", "phase"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_maintenance_evictions_total",
			Help: "Evictions from nodes that are drained for a NodeMaintenance, by result: Accepted, Refused, Gone or Error.",
		}, []string{"result"}),
		drains: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tidekeeper_maintenance_drain_seconds",
			Help:    "Seconds from the beginning of a drain until the node was empty.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 10800},
		}),
	}
	for _, result := range eviction.Results {
		m.evictions.WithLabelValues(string(result))
	}
	return m, errors.Join(registry.Register(m.nodes), registry.Register(m.evictions), registry.Register(m.drains))
}

// phases lists all phases of a node's maintenance, as values of the label "phase".
var phases = []tidekeeperv1.NodePhase{
	tidekeeperv1.NodeDraining, tidekeeperv1.NodeDrained, tidekeeperv1.NodeReturning, tidekeeperv1.NodeDone, tidekeeperv1.NodeFailed, tidekeeperv1.NodeReleased,
}

// set sets the numbers of a NodeMaintenance's nodes by phase. Failures before the last edit of the
// spec are not counted. status is nil if the NodeMaintenance was deleted.
func (m *metrics) set(maintenance string, status *tidekeeperv1.NodeMaintenanceStatus) {
	if status == nil {
		m.nodes.DeletePartialMatch(prometheus.Labels{"maintenance": maintenance})
		return
	}
	counts := map[tidekeeperv1.NodePhase]int{}
	for _, p := range status.Nodes {
		counts[p.Phase]++
	}
	counts[tidekeeperv1.NodeFailed] = max(0, counts[tidekeeperv1.NodeFailed]-int(status.ToleratedFailures))
	for _, phase := range phases {
		m.nodes.WithLabelValues(maintenance, string(phase)).Set(float64(counts[phase]))
	}
}

// phase records the duration of a node's drain if the phase that the node has entered is Drained.
func (m *metrics) phase(p *tidekeeperv1.NodeProgress) {
	if p.Phase == tidekeeperv1.NodeDrained {
		m.drains.Observe(max(time.Second, p.Since.Sub(p.StartTime.Time)).Seconds())
	}
}
