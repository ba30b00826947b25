// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
)

// metricStage is the name of the histogram of stage durations.
const metricStage = "tidekeeper_pod_startup_stage_seconds"

// buckets lists the upper bounds of the buckets in seconds, for users who do not scrape native
// histograms. Durations are whole seconds, so the bucket up to 1 contains all durations that were
// really shorter than two seconds.
var buckets = []float64{1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800}

// metrics holds the histograms of pod startups. The number of series depends on the number of node
// pools and stages, not on the number of pods.
type metrics struct {
	stages *prometheus.HistogramVec
}

// RegisterMetrics registers this package's metrics without values. It is used to generate
// docs/reference.
func RegisterMetrics(registry prometheus.Registerer) error {
	_, err := newMetrics(registry)
	return err
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                            metricStage,
		Help:                            "Seconds that pods took for each stage of their start-up, in whole seconds, observed when the pod first became ready. pool is the node pool of its node, the oldest if there are several.",
		Buckets:                         buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"stage", "pool"})}
	return m, registry.Register(m.stages)
}

// observe adds a pod's startup to a node pool's histograms.
func (m *metrics) observe(pool string, durations map[podtimeline.StageName]time.Duration) {
	for stage, duration := range durations {
		m.stages.WithLabelValues(string(stage), pool).Observe(duration.Seconds())
	}
}

// forget drops the series of a deleted node pool.
func (m *metrics) forget(pool string) {
	m.stages.DeletePartialMatch(prometheus.Labels{"pool": pool})
}
