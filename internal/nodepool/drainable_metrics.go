// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"github.com/prometheus/client_golang/prometheus"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

var (
	drainBlockedDesc = prometheus.NewDesc("tidekeeper_nodepool_drain_blocked_nodes",
		"Nodes of a pool that could not be drained now, each by itself, because pods would stay or be harmed; absent if the pool does not ask with spec.drainable. Served by the leader.",
		[]string{"pool"}, nil)
	drainBlockersDesc = prometheus.NewDesc("tidekeeper_nodepool_drain_blockers",
		"Pods of a pool that would not leave a drain of their node now, or not without harm, by reason as in kubectl tide pools blockers; NotEvaluated: it is not known which PodDisruptionBudgets select them. Ignored reasons are left out. Served by the leader.",
		[]string{"pool", "reason"}, nil)
)

// drainableCollector reports, for each pool, how many nodes cannot be drained and how many pods
// block the drains, according to the latest evaluation. worker is nil if only the descriptions of
// the metrics are needed.
type drainableCollector struct{ worker *drainableWorker }

// Describe implements [prometheus.Collector].
func (c drainableCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- drainBlockedDesc
	ch <- drainBlockersDesc
}

// Collect implements [prometheus.Collector].
func (c drainableCollector) Collect(ch chan<- prometheus.Metric) {
	if c.worker == nil {
		return
	}
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	for pool, t := range c.worker.tallies {
		gauge(drainBlockedDesc, t.Blocked, pool)
		for reason, pods := range t.Pods {
			gauge(drainBlockersDesc, pods, pool, string(reason))
		}
		gauge(drainBlockersDesc, t.Uncertain, pool, tidekeeperv1.ReasonNotEvaluated)
	}
}
