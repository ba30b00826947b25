// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestChartLabelsTheMonitoring checks that a Prometheus with custom label selectors finds the
// chart's monitoring objects if their labels are configured.
func TestChartLabelsTheMonitoring(t *testing.T) {
	rendered := renderChart(t, "--set=monitoring.serviceMonitor=true,monitoring.alerts=true,monitoring.labels.release=stack")
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		labels, _, _ := unstructured.NestedStringMap(rendered[kind+" "+namespace+"/tidekeeper"], "metadata", "labels")
		if d := cmp.Diff(map[string]string{"release": "stack"}, labels); d != "" {
			t.Errorf("%s: labels (-want +got):\n%s", kind, d)
		}
	}
}
