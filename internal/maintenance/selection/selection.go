// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection evaluates the spec of a NodeMaintenance: which nodes it selects, in which
// order, how many may be unavailable, and at which times. It uses no client, clock or logger.
package selection

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// Times parses the schedule of the rounds and the windows in which drains may begin from a spec.
// Without a schedule, ticks is nil.
func Times(spec *tidekeeperv1.NodeMaintenanceSpec) (ticks *schedule.Schedule, windows schedule.Windows, err error) {
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

// Node is a node that a NodeMaintenance selects.
type Node struct {
	*corev1.Node
	// Group is the index of the node's pool in spec.nodes.pools, or 0 if the spec names no pools.
	Group int
}

// Nodes returns the nodes in the list that a NodeMaintenance selects, in the order of their
// maintenance: by pool, then by name. A pool that does not exist has no nodes.
func Nodes(from *tidekeeperv1.MaintenanceNodes, list []*corev1.Node, pools []*tidekeeperv1.NodePool, now time.Time) ([]Node, error) {
	var selected []Node
	known := map[string]bool{}
	add := func(group int, matches func(*corev1.Node) bool) {
		for _, node := range list {
			if !known[node.Name] && matches(node) && IsOutdated(node, from.Outdated, now) {
				known[node.Name] = true
				selected = append(selected, Node{node, group})
			}
		}
	}
	switch {
	case from.Selector != nil:
		selector, err := plan.Selector(&tidekeeperv1.NodePool{Spec: tidekeeperv1.NodePoolSpec{Selector: from.Selector}})
		if err != nil {
			return nil, fmt.Errorf("spec.nodes: %w", err)
		}
		add(0, matching(selector))
	case len(from.Names) > 0:
		add(0, func(node *corev1.Node) bool { return slices.Contains(from.Names, node.Name) })
	default:
		for group, name := range from.Pools {
			i := slices.IndexFunc(pools, func(p *tidekeeperv1.NodePool) bool { return p.Name == name })
			if i < 0 {
				continue
			}
			selector, err := plan.Selector(pools[i])
			if err != nil {
				return nil, fmt.Errorf("NodePool %s: %w", name, err)
			}
			add(group, matching(selector))
		}
	}
	slices.SortStableFunc(selected, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	return selected, nil
}

func matching(selector labels.Selector) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return selector.Matches(labels.Set(node.Labels)) }
}

// IsOutdated reports whether a node has another version of the kubelet than `outdated` asks for, or
// is older than `outdated` allows. If `outdated` is nil, every node counts as outdated.
func IsOutdated(node *corev1.Node, outdated *tidekeeperv1.OutdatedNodes, now time.Time) bool {
	if outdated == nil {
		return true
	}
	version := outdated.KubeletVersionNot != "" && node.Status.NodeInfo.KubeletVersion != outdated.KubeletVersionNot
	age := outdated.MinAgeSeconds > 0 && now.Sub(node.CreationTimestamp.Time) >= time.Duration(outdated.MinAgeSeconds)*time.Second
	return version || age
}

// Limit returns the maximum number of nodes, out of the given total, that may be unavailable at a
// time. It is at least 1.
func Limit(spec *tidekeeperv1.NodeMaintenanceSpec, total int) int {
	if spec.MaxUnavailable == nil {
		return 1
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(spec.MaxUnavailable, total, false)
	if err != nil {
		return 1
	}
	return max(1, limit)
}
