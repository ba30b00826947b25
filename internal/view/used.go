// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// NodeMetrics holds the measured usage of nodes, or the reason why the usage is unknown.
type NodeMetrics struct {
	List    []capacity.Metrics
	Problem string
}

// UsedBy returns the total usage of the named nodes as of now, or the reason why the usage is
// unknown.
func (m *NodeMetrics) UsedBy(names []string, now time.Time) (used *capacity.Used, problem string) {
	if m.Problem != "" {
		return nil, m.Problem
	}
	if used = capacity.UsedBy(names, m.List, now); used == nil {
		problem = fmt.Sprintf("none of its nodes has metrics of the last %.0f minutes", capacity.MetricsExpire.Minutes())
	}
	return used, problem
}
