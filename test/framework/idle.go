// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"testing"
)

// AssertIdle waits until the manager is idle: its queues are empty and none of its
// workers is busy. It fails the test if the manager does not become idle.
func (m *Manager) AssertIdle(t testing.TB) {
	t.Helper()
	Eventually(t, "the manager has nothing to do", func() error {
		metrics, err := m.readMetrics()
		if err != nil {
			return err
		}
		return errors.Join(metrics.isZero("workqueue_depth"), metrics.isZero("controller_runtime_active_workers"),
			metrics.isZero("workqueue_unfinished_work_seconds"))
	})
}

// isZero returns an error that lists the metric's series with a value other than zero. A metric
// without series is also an error.
func (m Metrics) isZero(name string) (err error) {
	if len(m[name].GetMetric()) == 0 {
		return fmt.Errorf("there is no metric %s", name)
	}
	for _, metric := range m[name].GetMetric() {
		if value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue(); value != 0 {
			err = errors.Join(err, fmt.Errorf("%s is %v of %v", name, value, metric.GetLabel()))
		}
	}
	return err
}
