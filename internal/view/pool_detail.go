// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// PoolDetail is a NodePool with its nodes and events.
type PoolDetail struct {
	Pool     `json:",inline"`
	Selector string   `json:"selector"`
	Settings []string `json:"settings"` // settings in the spec of the pool
	Members  []Member `json:"members"`  // the fullest first
	// Room is the part of the nodes that new pods can use, and FilledBy who requests most of the CPU
	// there; absent if the pods may not be read.
	Room     *capacity.Level `json:"room,omitempty"`
	FilledBy *FilledBy       `json:"filledBy,omitempty"`
	// Used is the usage of the nodes; absent if it is not known, and NoMetrics is why.
	Used      *capacity.Used `json:"used,omitempty"`
	NoMetrics string         `json:"-"`
	Events    []Event        `json:"events"`
}

// FilledBy is who requests the CPU of some nodes. The shares of each list add up to 100.
type FilledBy struct {
	Namespaces []capacity.Share `json:"namespaces"`
	Workloads  []capacity.Share `json:"workloads"`
}

// mostShares is how many namespaces and workloads FilledBy names before the rest.
const mostShares = 5

// Member is a node of a pool.
type Member struct {
	Name   string   `json:"name"`
	Ready  bool     `json:"ready"`
	Levels []Level  `json:"levels"` // empty if the pods may not be read
	Lacks  []string `json:"lacks"`  // settings in the spec of the pool
}

// PoolFacts are the objects that a PoolDetail is made from.
type PoolFacts struct {
	Pool    *tidekeeperv1.NodePool
	Members []corev1.Node
	// Pods by node; nil if they may not be read.
	Pods map[string][]*corev1.Pod
	// Cluster has the members with the pods on them, and may have others; nil to make it of Pods.
	Cluster *capacity.Cluster
	// Used is the usage of the members, nil if it is not known; NoMetrics is why.
	Used      *capacity.Used
	NoMetrics string
	Events    []corev1.Event
}

// PoolDetailOf returns a pool in detail as it is shown at a time.
func PoolDetailOf(f PoolFacts, now time.Time) (PoolDetail, error) {
	selector, err := plan.Selector(f.Pool)
	if err != nil {
		return PoolDetail{}, err
	}
	d := PoolDetail{
		Pool: PoolOf(f.Pool, now), Selector: selector.String(), Settings: settingsOf(f.Pool), Members: []Member{}, Used: f.Used, NoMetrics: f.NoMetrics, Events: Events(f.Events),
	}
	cluster := clusterOf(f)
	d.Room, d.FilledBy = roomOf(f, cluster)
	for i := range f.Members {
		d.Members = append(d.Members, memberOf(f, &f.Members[i], cluster))
	}
	slices.SortStableFunc(d.Members, func(a, b Member) int {
		if d := b.Fullest() - a.Fullest(); d != 0 {
			return int(d)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return d, nil
}

// clusterOf returns the members with the pods on them, nil if these may not be read.
func clusterOf(f PoolFacts) *capacity.Cluster {
	if f.Cluster != nil || f.Pods == nil {
		return f.Cluster
	}
	var list []*corev1.Pod
	for i := range f.Members {
		list = append(list, f.Pods[f.Members[i].Name]...)
	}
	return capacity.New(nodes.Pointers(f.Members), list)
}

// roomOf returns the level of the members, and the namespaces and workloads that fill them.
func roomOf(f PoolFacts, cluster *capacity.Cluster) (*capacity.Level, *FilledBy) {
	if cluster == nil {
		return nil, nil
	}
	var names []string
	for i := range f.Members {
		names = append(names, f.Members[i].Name)
	}
	members := cluster.Members(names)
	level := members.Level(plan.Taints(f.Pool))
	shares := func(workloads bool) []capacity.Share {
		return members.Shares(corev1.ResourceCPU, workloads, mostShares)
	}
	by := &FilledBy{Namespaces: shares(false), Workloads: shares(true)}
	if by.Namespaces == nil { // Nothing is requested.
		by = nil
	}
	return &level, by
}

func memberOf(f PoolFacts, node *corev1.Node, cluster *capacity.Cluster) Member {
	m := Member{Name: node.Name, Ready: nodes.IsReady(node), Lacks: missingSettings(f.Pool, node), Levels: []Level{}}
	if cluster != nil {
		requested, percent := cluster.Members([]string{node.Name}).Utilization()
		m.Levels = LevelsOf(percent, requested, node.Status.Allocatable)
	}
	return m
}

// Fullest returns the utilization, in percent, of the member's most used resource.
func (m *Member) Fullest() (most int32) {
	for _, l := range m.Levels {
		most = max(most, l.Percent)
	}
	return most
}
