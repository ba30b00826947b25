// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// Room has the nodes of a cluster with their pods, and the pools to evaluate, for questions about capacity.
// It is not safe for concurrent use.
type Room struct {
	Cluster *capacity.Cluster
	Nodes   []*corev1.Node
	Pods    []*corev1.Pod
	Pools   []PoolMembers
}

// PoolMembers is a pool with the names of its nodes.
type PoolMembers struct {
	*tidekeeperv1.NodePool
	Members []string
}

// NewRoom returns the room in a cluster for these pools. Pools with an invalid selector are left out, and
// named in problems.
func NewRoom(pools []*tidekeeperv1.NodePool, nodes []*corev1.Node, running []*corev1.Pod) (room *Room, problems []string) {
	return NewRoomWith(&capacity.Keys{}, pools, nodes, running)
}

// NewRoomWith is [NewRoom] with a cache of class keys, for repeated calls.
func NewRoomWith(keys *capacity.Keys, pools []*tidekeeperv1.NodePool, nodes []*corev1.Node, running []*corev1.Pod) (room *Room, problems []string) {
	room = &Room{Cluster: capacity.NewWith(keys, nodes, running), Nodes: nodes, Pods: running}
	for _, pool := range pools {
		selector, err := plan.Selector(pool)
		if err != nil {
			problems = append(problems, fmt.Sprintf("NodePool %s is left out: %s", pool.Name, err))
			continue
		}
		room.Pools = append(room.Pools, PoolMembers{pool, MembersOf(nodes, selector)})
	}
	return room, problems
}

// MembersOf returns the names of the nodes that a selector matches.
func MembersOf[N metav1.Object](nodes []N, selector labels.Selector) []string {
	var members []string
	for _, node := range nodes {
		if selector.Matches(labels.Set(node.GetLabels())) {
			members = append(members, node.GetName())
		}
	}
	return members
}

// PoolFit describes how many copies of a pod fit into a pool.
type PoolFit struct {
	Pool         string `json:"pool"`
	Members      int    `json:"members"`
	capacity.Fit `json:",inline"`
}

// PodOf returns a pod with one container that has these requests.
func PodOf(requests corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "copy", Resources: corev1.ResourceRequirements{Requests: requests},
	}}}}
}

// Fit returns how many copies of a pod fit into each pool. If tolerant is set, the copies tolerate the taints
// of the pool, like pods with the pool's RuntimeClass.
func (r *Room) Fit(pod *corev1.Pod, tolerant bool) []PoolFit {
	fits := []PoolFit{}
	for _, pool := range r.Pools {
		copied := pod
		if tolerant {
			copied = pod.DeepCopy()
			for _, t := range plan.Taints(pool.NodePool) {
				copied.Spec.Tolerations = append(copied.Spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
			}
		}
		fits = append(fits, PoolFit{pool.Name, len(pool.Members), r.Cluster.Members(pool.Members).Fit(copied)})
	}
	return fits
}

// PoolLoss is the loss of nodes of a pool.
type PoolLoss struct {
	// Pool is empty if the nodes were given by name.
	Pool string `json:"pool,omitempty"`
	// Lost is the name of the lost node or zone.
	Lost string `json:"lost"`
	// Worst is set if the loss of no other node of the pool would leave more pods without a place.
	Worst         bool `json:"worst,omitempty"`
	capacity.Loss `json:",inline"`
}

// WorstLoss returns the loss of the node of a pool that would leave the most pods without a place; false if
// the pool has no node.
func (r *Room) WorstLoss(pool PoolMembers) (PoolLoss, bool) {
	node, loss, found := r.Cluster.WorstNode(pool.Members)
	return PoolLoss{Pool: pool.Name, Lost: "node " + node, Worst: true, Loss: loss}, found
}

// Losses returns, for each pool, the loss of its worst node and the loss of each of its zones; if zones are
// given, only the losses of these zones.
func (r *Room) Losses(zones []string) []PoolLoss {
	losses := []PoolLoss{}
	byZone := r.Cluster.Zones()
	for _, pool := range r.Pools {
		if len(zones) == 0 {
			if worst, found := r.WorstLoss(pool); found {
				losses = append(losses, worst)
			}
		}
		for _, zone := range r.Cluster.Members(pool.Members).Zones() {
			if len(zones) == 0 || slices.Contains(zones, zone) {
				losses = append(losses, PoolLoss{Pool: pool.Name, Lost: "zone " + zone, Loss: r.Cluster.Lose(byZone[zone], pool.Members)})
			}
		}
	}
	return losses
}

// PendingGroup is a group of pending pods that are alike, with the answer of each pool.
type PendingGroup struct {
	Namespace string              `json:"namespace"`
	Pods      []string            `json:"pods"`
	Workloads []string            `json:"workloads"`
	Requests  corev1.ResourceList `json:"requests"`
	Pools     []PendingIn         `json:"pools"`
}

// Answers of a pool for pending pods.
const (
	// FitsNow means that the pool has room for a pod of the group.
	FitsNow = "FitsNow"
	// FitsEmpty means that only an empty node of the pool would have room.
	FitsEmpty = "FitsAnEmptyNode"
	// NeverFits means that no node of the pool could take a pod, even without other pods.
	NeverFits = "Never"
)

// PendingIn is the answer of a pool for a group of pending pods.
type PendingIn struct {
	Answer  string `json:"answer"` // FitsNow, FitsAnEmptyNode or Never
	PoolFit `json:",inline"`
}

// Pending returns the pending pods of the cluster, in groups of pods that are alike.
func (r *Room) Pending() []PendingGroup {
	groups := []PendingGroup{}
	for _, g := range r.Cluster.Pending() {
		groups = append(groups, r.pendingGroup(g))
	}
	return groups
}

func (r *Room) pendingGroup(g capacity.Group) PendingGroup {
	first := g.Pods[0]
	shown := PendingGroup{Namespace: first.Namespace, Requests: capacity.RequestsOf(first), Pools: []PendingIn{}}
	for _, pod := range g.Pods {
		shown.Pods = append(shown.Pods, pod.Name)
		if workload := pods.WorkloadName(pod); !slices.Contains(shown.Workloads, workload) {
			shown.Workloads = append(shown.Workloads, workload)
		}
	}
	for _, fit := range r.Fit(first, false) {
		in := PendingIn{Answer: NeverFits, PoolFit: fit}
		switch {
		case in.Copies > 0:
			in.Answer = FitsNow
		case in.OnEmptyNode > 0:
			in.Answer = FitsEmpty
		}
		shown.Pools = append(shown.Pools, in)
	}
	return shown
}

// WorkloadText names the workload of a group, or the first workload and the number of others.
func (g *PendingGroup) WorkloadText() string {
	if more := len(g.Workloads) - 1; more > 0 {
		return g.Workloads[0] + fmt.Sprintf(" and %d more", more)
	}
	return g.Workloads[0]
}

// AnswerText describes whether and when the pool can take the pods, with a severity.
func (in *PendingIn) AnswerText() (string, Severity) {
	switch in.Answer {
	case FitsNow:
		text := fmt.Sprintf("%d now", in.Copies)
		if len(in.AtMost) > 0 {
			text = "at most " + text + " (not evaluated: " + strings.Join(in.AtMost, ", ") + ")"
		}
		return text, Good
	case FitsEmpty:
		return "on an empty node", Warning
	default:
		return "never", Neutral
	}
}
