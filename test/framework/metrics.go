// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics is one scrape of a manager's metrics, keyed by metric name.
type Metrics map[string]*dto.MetricFamily

// ReadMetrics scrapes the manager's metrics, which must be served over plain HTTP.
func (m *Manager) ReadMetrics(t testing.TB) Metrics {
	t.Helper()
	metrics, err := m.readMetrics()
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

func (m *Manager) readMetrics() (Metrics, error) {
	response, err := http.Get(m.Metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s/metrics answers %s", m.Metrics, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// Sum returns the sum of all series of a counter or gauge, or 0 if the metric does not exist.
func (m Metrics) Sum(name string) float64 {
	sum := 0.0
	for _, metric := range m[name].GetMetric() {
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	}
	return sum
}

// SumOf is [Metrics.Sum] over only the series whose label `label` has the given value.
func (m Metrics) SumOf(name, label, value string) float64 {
	sum := 0.0
	for _, metric := range m[name].GetMetric() {
		for _, l := range metric.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// Value returns the value of the first gauge or counter series that has all of the given labels,
// and whether there is one.
func (m Metrics) Value(name string, labels map[string]string) (float64, bool) {
	for _, metric := range m[name].GetMetric() {
		found := 0
		for _, l := range metric.GetLabel() {
			if value, asked := labels[l.GetName()]; asked && value == l.GetValue() {
				found++
			}
		}
		if found == len(labels) {
			return metric.GetCounter().GetValue() + metric.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

// AssertSound fails the test if the manager has exited, or if a reconcile has panicked. The manager
// recovers from a panic and continues, but a panic is a bug.
func (m *Manager) AssertSound(t testing.TB) {
	t.Helper()
	if !m.Running() {
		t.Fatal("the manager has ended")
	}
	if panics := m.ReadMetrics(t).Sum("controller_runtime_reconcile_panics_total"); panics > 0 {
		t.Errorf("%.0f reconciles have panicked", panics)
	}
}
