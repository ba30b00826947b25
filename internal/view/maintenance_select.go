// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// maintenanceSchedule parses the schedule and the windows of a spec. Without a schedule, ticks is nil.
func maintenanceSchedule(spec *tidekeeperv1.NodeMaintenanceSpec) (ticks *schedule.Schedule, windows schedule.Windows, err error) {
	for i, w := range spec.Windows {
		opens, err := schedule.Parse(string(w.Schedule), spec.TimeZone)
		if err != nil {
			return nil, nil, fmt.Errorf("windows[%d]: %w", i, err)
		}
		windows = append(windows, schedule.Window{Opens: opens, Length: time.Duration(w.DurationSeconds) * time.Second})
	}
	if spec.Schedule != "" {
		ticks, err = schedule.Parse(string(spec.Schedule), spec.TimeZone)
	}
	return ticks, windows, err
}

// selectedNodes returns the nodes that a NodeMaintenance selects now, in the order in which they will
// be maintained.
func selectedNodes(f MaintenanceFacts, now time.Time) ([]selectedNode, error) {
	var selected []selectedNode
	add := func(group int, matches func(*corev1.Node) bool) {
		for _, node := range f.Nodes {
			known := slices.ContainsFunc(selected, func(s selectedNode) bool { return s.Name == node.Name })
			if !known && matches(node) && isOutdated(node, f.Maintenance.Spec.Nodes.Outdated, now) {
				selected = append(selected, selectedNode{node, group})
			}
		}
	}
	switch from := f.Maintenance.Spec.Nodes; {
	case from.Selector != nil:
		selector, err := nodeSelector(from.Selector)
		if err != nil {
			return nil, fmt.Errorf("spec.nodes: %w", err)
		}
		add(0, matching(selector))
	case len(from.Names) > 0:
		add(0, func(node *corev1.Node) bool { return slices.Contains(from.Names, node.Name) })
	default:
		for group, name := range from.Pools {
			i := slices.IndexFunc(f.Pools, func(p *tidekeeperv1.NodePool) bool { return p.Name == name })
			if i < 0 {
				continue
			}
			selector, err := plan.Selector(f.Pools[i])
			if err != nil {
				return nil, fmt.Errorf("NodePool %s: %w", name, err)
			}
			add(group, matching(selector))
		}
	}
	slices.SortStableFunc(selected, func(a, b selectedNode) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.Name, b.Name))
	})
	return selected, nil
}

// nodeSelector returns the label selector of a NodeSelector.
func nodeSelector(s *tidekeeperv1.NodeSelector) (labels.Selector, error) {
	return plan.Selector(&tidekeeperv1.NodePool{Spec: tidekeeperv1.NodePoolSpec{Selector: s}})
}

func matching(selector labels.Selector) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return selector.Matches(labels.Set(node.Labels)) }
}

// isOutdated reports whether a node is out of date. Without conditions, every node is.
func isOutdated(node *corev1.Node, outdated *tidekeeperv1.OutdatedNodes, now time.Time) bool {
	if outdated == nil {
		return true
	}
	version := outdated.KubeletVersionNot != "" && node.Status.NodeInfo.KubeletVersion != outdated.KubeletVersionNot
	age := outdated.MinAgeSeconds > 0 && now.Sub(node.CreationTimestamp.Time) >= time.Duration(outdated.MinAgeSeconds)*time.Second
	return version || age
}
