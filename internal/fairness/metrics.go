// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Rows is the maximum number of namespaces with their own series in a metric, since the number of
// series must not grow with the number of namespaces that users create.
const Rows = 20

// gauges lists the metrics of resource use by namespace.
var gauges = []struct {
	desc  *prometheus.Desc
	value func(Use) float64
}{
	{describe("requests", "Requests to the API server"), func(u Use) float64 { return u.Requests }},
	{describe("worker_seconds", "Seconds of work by workers"), func(u Use) float64 { return u.WorkerSeconds }},
	{describe("deferred_reconciles", "Reconciles that were deferred because a namespace had used up its requests to the API server,"), func(u Use) float64 { return u.Deferred }},
}

func describe(name, used string) *prometheus.Desc {
	return prometheus.NewDesc("tidekeeper_namespace_"+name, fmt.Sprintf(
		"%s for the objects of a namespace in the last %d minutes, by namespace: for each of the %d namespaces with the highest values, and the sum of all others under the empty namespace.",
		used, windowMinutes, Rows), []string{"namespace"}, nil)
}

// RegisterMetrics registers the metrics of this package without values, so that docs/reference can
// list them.
func RegisterMetrics(registry prometheus.Registerer) error {
	return errors.Join(registry.Register(&Shares{}), registry.Register(&Objects{}))
}

// Describe implements [prometheus.Collector].
func (s *Shares) Describe(descriptions chan<- *prometheus.Desc) {
	for _, g := range gauges {
		descriptions <- g.desc
	}
}

// Collect implements [prometheus.Collector].
func (s *Shares) Collect(metrics chan<- prometheus.Metric) {
	used := s.used()
	for _, g := range gauges {
		values := make(map[string]float64, len(used))
		for namespace, u := range used {
			if v := g.value(u); v > 0 {
				values[namespace] = v
			}
		}
		Collect(metrics, g.desc, values)
	}
}

// Collect sends one gauge for each of the [Rows] namespaces with the highest values, labeled with
// the namespace, and one gauge with an empty label for the sum of all other namespaces.
func Collect(metrics chan<- prometheus.Metric, desc *prometheus.Desc, values map[string]float64) {
	type row struct {
		namespace string
		value     float64
	}
	rows := make([]row, 0, len(values))
	for namespace, value := range values {
		rows = append(rows, row{namespace, value})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.namespace, b.namespace))
	})
	others := 0.0
	for i, r := range rows {
		if i >= Rows {
			others += r.value
			continue
		}
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, r.value, r.namespace)
	}
	metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, others, "")
}
