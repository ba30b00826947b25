// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"strings"
)

// TryMetrics is [Manager.ReadMetrics] for a manager that may be about to exit. It returns an error
// instead of failing the test.
func (m *Manager) TryMetrics() (Metrics, error) { return m.readMetrics() }

// Errors returns the number of failed reconciles.
func (m Metrics) Errors() int { return int(m.Sum("controller_runtime_reconcile_errors_total")) }

// AtRest returns nil if no work is queued and no worker is busy. It also returns nil for a standby,
// which has neither queues nor workers yet.
func (m Metrics) AtRest() error {
	if len(m["workqueue_depth"].GetMetric()) == 0 || len(m["controller_runtime_active_workers"].GetMetric()) == 0 {
		if m["leader_election_master_status"] != nil && m.Sum("leader_election_master_status") == 0 {
			return nil
		}
		return fmt.Errorf("it has no metrics of queues and workers")
	}
	var busy []string
	for _, name := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
		for _, metric := range m[name].GetMetric() {
			if value := metric.GetGauge().GetValue(); value != 0 {
				of := ""
				for _, label := range metric.GetLabel() {
					if label.GetName() == "controller" || of == "" && label.GetName() == "name" {
						of = label.GetValue()
					}
				}
				busy = append(busy, fmt.Sprintf("%s of %s is %.0f", name, of, value))
			}
		}
	}
	if len(busy) > 0 {
		return fmt.Errorf("%s; the longest reconcile has been running for %.0f s", strings.Join(busy, ", "), m.Sum("workqueue_longest_running_processor_seconds"))
	}
	return nil
}
