// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/eviction"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
)

// metrics holds the controllers' counters. It holds no gauges, because [poolCollector] reads their
// values from the model at each scrape.
type metrics struct {
	nodeWrites   *prometheus.CounterVec
	corrections  *prometheus.CounterVec
	statusWrites *prometheus.CounterVec
	evictions    *prometheus.CounterVec
}

// Values of the label "result" of tidekeeper_nodepool_node_writes_total.
const (
	resultWritten  = "written"
	resultConflict = "conflict"
	resultError    = "error"
	resultDelayed  = "delayed"
)

// RegisterMetrics registers this package's metrics without values, so that the reference in
// docs/reference can be generated.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry, state.NewCluster())
	return errors.Join(err, registry.Register(drainableCollector{}))
}

func newMetrics(registry prometheus.Registerer, cluster *state.Cluster) (*metrics, error) {
	m := &metrics{
		nodeWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_nodepool_node_writes_total",
			Help: "Patches sent to nodes, by result: written, conflict (a value that the patch depends on had changed; retried), error, or delayed (not sent yet, because the node was patched too often).",
		}, []string{"result"}),
		corrections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_nodepool_drift_corrections_total",
			Help: "Labels, annotations and taints that were restored after another client had changed them.",
		}, []string{"pool"}),
		statusWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_nodepool_status_writes_total",
			Help: "Writes of the status of a pool.",
		}, []string{"pool"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_nodepool_evictions_total",
			Help: "Evictions from nodes that are emptied within budgets, by result: Accepted, Refused, Gone, Error.",
		}, []string{"result"}),
	}
	for _, result := range eviction.Results {
		m.evictions.WithLabelValues(string(result))
	}
	for _, result := range []string{resultWritten, resultConflict, resultError, resultDelayed} {
		m.nodeWrites.WithLabelValues(result)
	}
	for _, c := range []prometheus.Collector{m.nodeWrites, m.corrections, m.statusWrites, m.evictions, poolCollector{cluster}} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// forget removes the time series of a deleted pool from the counters.
func (m *metrics) forget(pool string) {
	m.corrections.DeleteLabelValues(pool)
	m.statusWrites.DeleteLabelValues(pool)
}

// poolCollector reports the state of all pools in the in-memory model at the time of a scrape. It
// does not use the pools' statuses for sums and counts, because they may lag behind the model by
// some seconds.
type poolCollector struct{ cluster *state.Cluster }

var (
	nodesDesc = prometheus.NewDesc("tidekeeper_nodepool_nodes",
		"Member nodes of a pool, by state: all, ready, usable (new pods can start there), outdated (do not match the pool's spec yet), held_back (wait for a NoExecute taint), emptying (within budgets), blocked (cannot be emptied) or conflicted (an older pool has a key).",
		[]string{"pool", "state"}, nil)
	resourcesDesc = prometheus.NewDesc("tidekeeper_nodepool_resource",
		"Resources of a pool by kind: capacity, allocatable, requested, usable (the part of allocatable that new and running pods can use) or free (usable and not requested); cpu in cores, the others in bytes or units.",
		[]string{"pool", "kind", "resource"}, nil)
	lostDesc = prometheus.NewDesc("tidekeeper_nodepool_lost",
		"Resources of a pool that new pods cannot use, by cause; cpu in cores, the others in bytes or units.",
		[]string{"pool", "cause", "resource"}, nil)
	largestFitDesc = prometheus.NewDesc("tidekeeper_nodepool_largest_fit",
		"The largest free amount of a resource on any one node of a pool, and so the most that a new pod can get; the largest amounts of two resources may be on different nodes.",
		[]string{"pool", "resource"}, nil)
	headroomDesc = prometheus.NewDesc("tidekeeper_nodepool_headroom",
		"1 if the condition Headroom of a pool is True, 0 if it is False; absent if the pool asks for no headroom, or it is not known.",
		[]string{"pool"}, nil)
	readyDesc = prometheus.NewDesc("tidekeeper_nodepool_ready",
		"1 if the condition Ready of a pool is True, with its reason.",
		[]string{"pool", "reason"}, nil)
)

// Describe implements [prometheus.Collector].
func (c poolCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- nodesDesc
	ch <- resourcesDesc
	ch <- lostDesc
	ch <- largestFitDesc
	ch <- headroomDesc
	ch <- readyDesc
}

// Collect implements [prometheus.Collector].
func (c poolCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, pool := range c.cluster.PoolNames() {
		v, known := c.cluster.Pool(pool)
		if !known {
			continue
		}
		gauge(nodesDesc, float64(v.Nodes), pool, "all")
		gauge(nodesDesc, float64(v.Ready), pool, "ready")
		gauge(nodesDesc, float64(v.UsableNodes), pool, "usable")
		gauge(nodesDesc, float64(v.Outdated), pool, "outdated")
		gauge(nodesDesc, float64(v.EvictionPending), pool, "held_back")
		gauge(nodesDesc, float64(v.Emptying), pool, "emptying")
		gauge(nodesDesc, float64(v.Blocked), pool, "blocked")
		gauge(nodesDesc, float64(v.Conflicted), pool, "conflicted")
		for kind, list := range map[string]corev1.ResourceList{
			"capacity": v.Capacity, "allocatable": v.Allocatable, "requested": v.Requested, "usable": v.Usable, "free": v.Free,
		} {
			for name, quantity := range list {
				gauge(resourcesDesc, quantity.AsApproximateFloat64(), pool, kind, string(name))
			}
		}
		for _, lost := range v.Lost {
			for name, quantity := range lost.Resources {
				gauge(lostDesc, quantity.AsApproximateFloat64(), pool, string(lost.Cause), string(name))
			}
		}
		for name, quantity := range v.LargestFit {
			gauge(largestFitDesc, quantity.AsApproximateFloat64(), pool, string(name))
		}
		for _, condition := range v.Pool.Status.Conditions {
			is := 0.0
			if condition.Status == metav1.ConditionTrue {
				is = 1
			}
			switch {
			case condition.Type == tidekeeperv1.ConditionReady:
				gauge(readyDesc, is, pool, condition.Reason)
			case condition.Type == tidekeeperv1.ConditionHeadroom && condition.Status != metav1.ConditionUnknown:
				gauge(headroomDesc, is, pool)
			}
		}
	}
}
