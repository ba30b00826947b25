// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// PoolDetail is the detailed description of a NodePool, with its nodes and events.
type PoolDetail struct {
	Pool     `json:",inline"`
	Selector string   `json:"selector"`
	Settings []string `json:"settings"` // settings in the pool's spec
	Members  []Member `json:"members"`  // fullest first
	// Room describes the capacity of the pool's nodes for new pods. FilledBy lists the namespaces
	// and workloads that request the most CPU. Both are missing if the user is not allowed to list
	// pods.
	Room     *capacity.Room `json:"room,omitempty"`
	FilledBy *FilledBy      `json:"filledBy,omitempty"`
	// Devices counts the devices of the nodes. It is missing if the cluster has no DeviceClasses, or
	// if NoDevices explains why the devices are not known.
	Devices   *capacity.DeviceCounts `json:"devices,omitempty"`
	NoDevices string                 `json:"-"`
	// Used is the measured usage of the nodes. If it is missing, NoMetrics explains why.
	Used      *capacity.Used `json:"used,omitempty"`
	NoMetrics string         `json:"-"`
	// Events is nil if the events are unknown.
	Events []Event `json:"events"`
}

// FilledBy lists the percentages of the requested CPU that each namespace and each workload
// requests. The percentages in each list add up to 100.
type FilledBy struct {
	Namespaces []capacity.Share `json:"namespaces"`
	Workloads  []capacity.Share `json:"workloads"`
}

// mostShares is the maximum number of namespaces in FilledBy, and also the maximum number of
// workloads. An additional entry in each list combines all others.
const mostShares = 5

// Member is a node of a pool, with the requested percentage of each resource.
type Member struct {
	Name   string   `json:"name"`
	Ready  bool     `json:"ready"`
	Levels []Level  `json:"levels"` // empty if the user is not allowed to list pods
	Lacks  []string `json:"lacks"`  // settings in the pool's spec that are missing from the node
	// ClosedSince is the time at which the pool closed the node to new pods, in order to evict its
	// pods within PodDisruptionBudgets. It is nil if the node is not being emptied.
	ClosedSince *metav1.Time `json:"closedSince,omitempty"`
}

// PoolFacts holds the objects from which a PoolDetail is computed.
type PoolFacts struct {
	Pool    *tidekeeperv1.NodePool
	Members []corev1.Node
	// Pods maps node names to the pods on the node. It is nil if the user is not allowed to list
	// pods.
	Pods map[string][]*corev1.Pod
	// Cluster contains at least the pool's nodes with their pods. If it is nil, it is computed from
	// Pods.
	Cluster *capacity.Cluster
	// Devices holds the devices of the cluster. It is nil if there are none or if they are not known;
	// NoDevices then explains why.
	Devices   *capacity.Devices
	NoDevices string
	// Used is the measured usage of the pool's nodes. If it is nil, NoMetrics explains why.
	Used      *capacity.Used
	NoMetrics string
	Events    []corev1.Event
	// NoEvents is set if the events are unknown.
	NoEvents bool
}

// PoolDetailOf returns a pool's details as of now.
func PoolDetailOf(f PoolFacts, now time.Time) (PoolDetail, error) {
	selector, err := plan.Selector(f.Pool)
	if err != nil {
		return PoolDetail{}, err
	}
	d := PoolDetail{
		Pool: PoolOf(f.Pool, now), Selector: selector.String(), Settings: settingsOf(f.Pool), Members: []Member{}, Used: f.Used, NoMetrics: f.NoMetrics,
		NoDevices: f.NoDevices, Events: Events(f.Events),
	}
	if f.NoEvents {
		d.Events = nil
	}
	cluster := clusterOf(f)
	if cluster != nil {
		d.addRoom(f, cluster.WithDevices(f.Devices))
	}
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

// clusterOf returns a cluster that contains at least the pool's nodes and their pods. It returns
// nil if the user is not allowed to list pods.
func clusterOf(f PoolFacts) *capacity.Cluster {
	if f.Cluster != nil || f.Pods == nil {
		return f.Cluster
	}
	var list []*corev1.Pod
	for i := range f.Members {
		list = append(list, f.Pods[f.Members[i].Name]...)
	}
	return capacity.New(lists.Pointers(f.Members), list)
}

// addRoom adds the capacity of the pool's nodes for new pods, the namespaces and workloads that
// request the most CPU, and the number of devices.
func (d *PoolDetail) addRoom(f PoolFacts, cluster *capacity.Cluster) {
	var names []string
	for i := range f.Members {
		names = append(names, f.Members[i].Name)
	}
	members, own := cluster.Members(names), plan.Taints(f.Pool)
	d.Room, d.Devices = new(members.Room(own)), members.Devices(own)
	shares := func(workloads bool) []capacity.Share {
		return members.Shares(corev1.ResourceCPU, workloads, mostShares)
	}
	// There are no shares if no pod requests CPU.
	if by := (&FilledBy{Namespaces: shares(false), Workloads: shares(true)}); by.Namespaces != nil {
		d.FilledBy = by
	}
}

func memberOf(f PoolFacts, node *corev1.Node, cluster *capacity.Cluster) Member {
	m := Member{Name: node.Name, Ready: nodes.IsReady(node), Lacks: missingSettings(f.Pool, node), ClosedSince: closedSince(f.Pool, node), Levels: []Level{}}
	if cluster != nil {
		requested, percent := cluster.Members([]string{node.Name}).Utilization()
		m.Levels = LevelsOf(percent, requested, node.Status.Allocatable)
	}
	return m
}

// Fullest returns the requested percentage of the member's fullest resource.
func (m *Member) Fullest() (most int32) {
	for _, l := range m.Levels {
		most = max(most, l.Percent)
	}
	return most
}
