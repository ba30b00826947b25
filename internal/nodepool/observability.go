// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a NodePool. Ready, Reconciling and Stalled mean what
// kstatus means by them.
const (
	// ConditionReady: the pool is in force on all its nodes. Its reason is the
	// STATUS column of kubectl get nodepools.
	ConditionReady = "Ready"
	// ConditionConflicted: an older pool has a key that this pool asks for.
	ConditionConflicted = "Conflicted"
	// ConditionReconciling: nodes are being brought up to date. Present only
	// while it is true.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: nothing gets better until somebody changes something.
	// Present only while it is true.
	ConditionStalled = "Stalled"
)

// Reasons of the condition Ready, in the order in which they outrank each
// other. The first five are not ready, the others are.
const (
	// ReasonDeleting: the pool is deleted and its nodes are being cleaned.
	ReasonDeleting = "Deleting"
	// ReasonInvalidSelector: the selector cannot be used; the schema of the
	// CRD should have refused it.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonRuntimeClassConflict: a RuntimeClass of the pool's name belongs to
	// somebody else.
	ReasonRuntimeClassConflict = "RuntimeClassConflict"
	// ReasonConflicted: as the condition Conflicted.
	ReasonConflicted = "Conflicted"
	// ReasonUpdating: some nodes do not look like the pool yet.
	ReasonUpdating = "Updating"
	// ReasonNoNodes: the pool selects no node.
	ReasonNoNodes = "NoNodes"
	// ReasonNodesNotReady: some nodes are not Ready themselves.
	ReasonNodesNotReady = "NodesNotReady"
	// ReasonHealthy: all nodes are Ready and look like the pool.
	ReasonHealthy = "Healthy"
)

// Reasons of the condition Conflicted.
const (
	ReasonKeyTaken   = "KeyTaken"
	ReasonNoConflict = "NoConflict"
)

// Reasons of events on a NodePool.
const (
	// EventNodesJoined and EventNodesLeft: nodes began or ceased to match the
	// selector.
	EventNodesJoined = "NodesJoined"
	EventNodesLeft   = "NodesLeft"
	// EventNodesUpdated: nodes were given, or rid of, what the spec says.
	EventNodesUpdated = "NodesUpdated"
	// EventDriftCorrected: somebody had changed on a node what the pool put
	// there; it was put back.
	EventDriftCorrected = "DriftCorrected"
	// EventValueReplaced: a node had another value, which was not the pool's,
	// where the spec asks for one.
	EventValueReplaced = "ValueReplaced"
	// EventNodeUpdateFailed: the API server refused the change of a node.
	EventNodeUpdateFailed = "NodeUpdateFailed"
	// EventNodesFoughtOver: somebody, or another pool, undoes what the pool
	// does to a node again and again; it is done less often.
	EventNodesFoughtOver = "NodesFoughtOver"
	// EventConflict: an older pool has a key that this pool asks for.
	EventConflict = "Conflict"
	// EventRuntimeClassConflict: a RuntimeClass of the pool's name belongs to
	// somebody else.
	EventRuntimeClassConflict = "RuntimeClassConflict"
	// The RuntimeClass of the pool was created, changed, replaced because of
	// another handler, or deleted.
	EventRuntimeClassCreated  = "RuntimeClassCreated"
	EventRuntimeClassUpdated  = "RuntimeClassUpdated"
	EventRuntimeClassReplaced = "RuntimeClassReplaced"
	EventRuntimeClassDeleted  = "RuntimeClassDeleted"
	// EventNodesEvicting: a NoExecute taint was let onto nodes.
	EventNodesEvicting = "NodesEvicting"
	// EventReconcileFailed: something went wrong that is tried again.
	EventReconcileFailed = "ReconcileFailed"
)

// metrics are the counters of the controllers; what can be told from the model
// is told by [fleetCollector] when it is asked.
type metrics struct {
	nodeWrites   *prometheus.CounterVec
	corrections  *prometheus.CounterVec
	statusWrites *prometheus.CounterVec
}

// Values of the label result of tidekeeper_nodepool_node_writes_total.
const (
	resultWritten  = "written"
	resultConflict = "conflict"
	resultError    = "error"
	resultDelayed  = "delayed"
)

// RegisterMetrics registers the metrics of this package with nothing behind them,
// for whoever lists them.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry, newFleet())
	return err
}

func newMetrics(registry prometheus.Registerer, f *fleet) (*metrics, error) {
	m := &metrics{
		nodeWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_nodepool_node_writes_total",
			Help: "Patches sent to nodes, by result: written, conflict (the node had changed meanwhile; it is tried again), error, or delayed (not sent yet, as the node never comes to rest).",
		}, []string{"result"}),
		corrections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_nodepool_drift_corrections_total",
			Help: "Labels, annotations and taints that were put back after somebody else had changed them.",
		}, []string{"pool"}),
		statusWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidekeeper_nodepool_status_writes_total",
			Help: "Writes of the status of a pool.",
		}, []string{"pool"}),
	}
	for _, result := range []string{resultWritten, resultConflict, resultError, resultDelayed} {
		m.nodeWrites.WithLabelValues(result)
	}
	for _, c := range []prometheus.Collector{m.nodeWrites, m.corrections, m.statusWrites, fleetCollector{f}} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// forget drops the series of a pool that is gone.
func (m *metrics) forget(pool string) {
	m.corrections.DeleteLabelValues(pool)
	m.statusWrites.DeleteLabelValues(pool)
}

// fleetCollector shows the model as it stands when it is scraped, which is
// exact where the status of a pool may lag by some seconds.
type fleetCollector struct{ fleet *fleet }

var (
	nodesDesc = prometheus.NewDesc("tidekeeper_nodepool_nodes",
		"Member nodes of a pool, by state: all of them, those that are ready, outdated (not as the pool asks), held_back (wait for a NoExecute taint) or conflicted (an older pool has a key).",
		[]string{"pool", "state"}, nil)
	resourcesDesc = prometheus.NewDesc("tidekeeper_nodepool_resource",
		"Resources of a pool by kind: capacity, allocatable or requested; cpu in cores, the others in bytes or pieces.",
		[]string{"pool", "kind", "resource"}, nil)
	readyDesc = prometheus.NewDesc("tidekeeper_nodepool_ready",
		"1 if the condition Ready of a pool is True, with its reason.",
		[]string{"pool", "reason"}, nil)
)

// Describe implements [prometheus.Collector].
func (c fleetCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- nodesDesc
	ch <- resourcesDesc
	ch <- readyDesc
}

// Collect implements [prometheus.Collector].
func (c fleetCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, pool := range c.fleet.poolNames() {
		v, known := c.fleet.view(pool)
		if !known {
			continue
		}
		gauge(nodesDesc, float64(v.nodes), pool, "all")
		gauge(nodesDesc, float64(v.ready), pool, "ready")
		gauge(nodesDesc, float64(v.unshaped), pool, "outdated")
		gauge(nodesDesc, float64(v.heldBack), pool, "held_back")
		gauge(nodesDesc, float64(v.conflicted), pool, "conflicted")
		for kind, list := range map[string]corev1.ResourceList{
			"capacity": v.capacity, "allocatable": v.allocatable, "requested": v.requested,
		} {
			for name, quantity := range list {
				gauge(resourcesDesc, quantity.AsApproximateFloat64(), pool, kind, string(name))
			}
		}
		for _, condition := range v.pool.Status.Conditions {
			if condition.Type == ConditionReady {
				ready := 0.0
				if condition.Status == metav1.ConditionTrue {
					ready = 1
				}
				gauge(readyDesc, ready, pool, condition.Reason)
			}
		}
	}
}
