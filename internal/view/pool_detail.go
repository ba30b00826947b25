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
	Members  []Member `json:"members"`  // fullest first
	// Room is the part of the nodes that new pods can use. FilledBy has the namespaces and workloads that
	// request most of the CPU. Both are missing if the user may not read pods.
	Room     *capacity.Level `json:"room,omitempty"`
	FilledBy *FilledBy       `json:"filledBy,omitempty"`
	// Used is the usage of the nodes; if it is missing, NoMetrics explains why.
	Used      *capacity.Used `json:"used,omitempty"`
	NoMetrics string         `json:"-"`
	Events    []Event        `json:"events"`
}

// FilledBy has the shares of namespaces and workloads in the requested CPU of a group of nodes. The shares of
// each list add up to 100.
type FilledBy struct {
	Namespaces []capacity.Share `json:"namespaces"`
	Workloads  []capacity.Share `json:"workloads"`
}

// mostShares is the maximum number of namespaces and of workloads in FilledBy, besides the rest.
const mostShares = 5

// Member is a node of a pool.
type Member struct {
	Name   string   `json:"name"`
	Ready  bool     `json:"ready"`
	Levels []Level  `json:"levels"` // empty if the user may not read pods
	Lacks  []string `json:"lacks"`  // settings in the spec of the pool
}

// PoolFacts has the objects that a PoolDetail is computed from.
type PoolFacts struct {
	Pool    *tidekeeperv1.NodePool
	Members []corev1.Node
	// Pods has the pods by node; nil if the user may not read pods.
	Pods map[string][]*corev1.Pod
	// Cluster has at least the members with their pods; nil to build it from Pods.
	Cluster *capacity.Cluster
	// Used is the usage of the members; if it is nil, NoMetrics explains why.
	Used      *capacity.Used
	NoMetrics string
	Events    []corev1.Event
}

// PoolDetailOf returns the details of a pool at the given time.
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

// clusterOf returns the members with their pods, nil if the user may not read pods.
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

// roomOf returns the level of the members, and the namespaces and workloads that request most.
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

// Fullest returns the utilization of the member's fullest resource, in percent.
func (m *Member) Fullest() (most int32) {
	for _, l := range m.Levels {
		most = max(most, l.Percent)
	}
	return most
}
