// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// Room evaluates the capacity of a cluster for pods. It holds the nodes with their pods, and the
// pools to evaluate. It is not safe for concurrent use.
type Room struct {
	Cluster *capacity.Cluster
	Nodes   []*corev1.Node
	Pods    []*corev1.Pod
	Pools   []PoolMembers
	// DaemonSets lists the DaemonSets of the cluster, whose pods also run on new nodes. It is nil
	// if the DaemonSets are not known.
	DaemonSets []*appsv1.DaemonSet
	// volumes holds the storage objects; nil if constraints on volumes are not evaluated.
	volumes *capacity.Volumes
	// devices holds the devices; nil if constraints on devices are not evaluated.
	devices *capacity.Devices

	// extended caches the results of the method withNewNode, which adds a new node to a cluster.
	extended map[extendedBy]extended
}

// PoolMembers holds a pool and the names of its nodes.
type PoolMembers struct {
	*tidekeeperv1.NodePool
	Members []string
}

// NewRoom returns a Room for the given pools of a cluster. It omits pools with an invalid selector,
// and names them in problems.
func NewRoom(pools []*tidekeeperv1.NodePool, nodes []*corev1.Node, running []*corev1.Pod) (room *Room, problems []string) {
	return newRoom(capacity.New(nodes, running), pools, nodes, running)
}

// NewRoomWith is like [NewRoom], but takes a cache of the pods' encoded requests and constraints,
// which repeated calls can share. If ctx is done before the Room is complete, it returns an error.
func NewRoomWith(ctx context.Context, keys *capacity.Keys, pools []*tidekeeperv1.NodePool, nodes []*corev1.Node, running []*corev1.Pod) (*Room, error) {
	cluster, err := capacity.NewWith(ctx, keys, nodes, running)
	if err != nil {
		return nil, err
	}
	room, _ := newRoom(cluster, pools, nodes, running)
	return room, nil
}

func newRoom(cluster *capacity.Cluster, pools []*tidekeeperv1.NodePool, nodes []*corev1.Node, running []*corev1.Pod) (room *Room, problems []string) {
	room = &Room{Cluster: cluster, Nodes: nodes, Pods: running}
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

// SetNeeds makes the Room evaluate constraints on volumes and devices. Constraints whose objects are
// nil are named as not evaluated.
func (r *Room) SetNeeds(v *capacity.Volumes, d *capacity.Devices) {
	r.volumes, r.devices, r.extended = v, d, nil
	r.Cluster.WithVolumes(v).WithDevices(d)
}

// newCluster returns a cluster with the given nodes and pods, and the volumes and devices of the
// Room.
func (r *Room) newCluster(nodes []*corev1.Node, running []*corev1.Pod) *capacity.Cluster {
	return capacity.New(nodes, running).WithVolumes(r.volumes).WithDevices(r.devices)
}

// MembersOf returns the names of the nodes that match a selector.
func MembersOf[N metav1.Object](nodes []N, selector labels.Selector) []string {
	var members []string
	for _, node := range nodes {
		if selector.Matches(labels.Set(node.GetLabels())) {
			members = append(members, node.GetName())
		}
	}
	return members
}

// PoolFit is the number of copies of a pod that fit into a pool, and the reasons why no more fit.
type PoolFit struct {
	Pool         string `json:"pool"`
	Members      int    `json:"members"`
	capacity.Fit `json:",inline"`
	// NewNode describes the copies that fit on nodes that are added to the pool. It is nil if the
	// pool has no nodeTemplate.
	NewNode *NewNodeFit `json:"newNode,omitempty"`
	// Preemption describes how the scheduler would make room for a copy on a node of the pool. It
	// is nil unless [Room.AddPreemptions] has set it.
	Preemption *capacity.Preemption `json:"preemption,omitempty"`
}

// PodOf returns a pod with a single container and the given requests.
func PodOf(requests corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "copy", Resources: corev1.ResourceRequirements{Requests: requests},
	}}}}
}

// Fit returns the number of copies of a pod that fit into each pool. If tolerant is set, the copies
// tolerate the pool's taints, as pods with the pool's RuntimeClass do. If wanted is not 0, Fit also
// returns the number of new nodes that are needed for this number of copies.
func (r *Room) Fit(pod *corev1.Pod, tolerant bool, wanted int64) []PoolFit {
	fits := []PoolFit{}
	for _, pool := range r.Pools {
		copied := pod
		if tolerant {
			copied = tolerantOf(pool, pod)
		}
		fit := PoolFit{Pool: pool.Name, Members: len(pool.Members), Fit: r.Cluster.Members(pool.Members).Fit(copied)}
		fit.NewNode = r.onNewNodes(pool, copied, wanted, &fit.Fit)
		fits = append(fits, fit)
	}
	return fits
}

// tolerantOf returns a copy of the pod that tolerates the pool's taints.
func tolerantOf(pool PoolMembers, pod *corev1.Pod) *corev1.Pod {
	copied := pod.DeepCopy()
	for _, t := range plan.Taints(pool.NodePool) {
		copied.Spec.Tolerations = append(copied.Spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}
	return copied
}

// PoolLoss is the effect of losing nodes or a zone of a pool.
type PoolLoss struct {
	// Pool is the pool's name. It is empty if the user selected the nodes by name.
	Pool string `json:"pool,omitempty"`
	// Lost describes the lost nodes, such as "node n1", "3 nodes" or "zone a".
	Lost string `json:"lost"`
	// Worst is set for the loss of the pool's worst node, whose loss leaves the most pods
	// unschedulable.
	Worst         bool `json:"worst,omitempty"`
	capacity.Loss `json:",inline"`
}

// WorstLoss returns the effect of losing the pool's worst node, whose loss leaves the most pods
// unschedulable. It returns false if the pool has no nodes.
func (r *Room) WorstLoss(pool PoolMembers) (PoolLoss, bool) {
	node, loss, found := r.Cluster.WorstNode(pool.Members)
	return PoolLoss{Pool: pool.Name, Lost: "node " + node, Worst: true, Loss: loss}, found
}

// Losses returns, for every pool, the effect of losing the worst node and of losing each zone. If
// zones is not empty, it returns only the effect of losing each of the given zones.
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

// Sequence describes successive losses of nodes. It also describes the state before the first loss:
// which nodes are cordoned, and which additional pods a rollout has started.
type Sequence struct {
	// Cordoned lists the names of nodes to treat as cordoned.
	Cordoned []string
	// Surging is the workload whose rollout has started the additional pods in Surge. It is "" if
	// there is no rollout.
	Surging string
	Surge   []*corev1.Pod
	// Steps lists the names of the nodes lost in each step.
	Steps [][]string
}

// InSequence returns the effect of each loss in s. A pod that moved to another node after a loss
// must move again if that node is lost later. If s has a rollout, its effect comes first.
func (r *Room) InSequence(s *Sequence) (losses []PoolLoss) {
	cluster := r.Cluster
	if len(s.Cordoned) > 0 {
		cluster = r.newCluster(cordonedNodes(r.Nodes, s.Cordoned), r.Pods)
	}
	var loss capacity.Loss
	if s.Surging != "" {
		loss, cluster = cluster.Placing(s.Surge)
		losses = append(losses, PoolLoss{Lost: "rollout of " + s.Surging, Loss: loss})
	}
	for i, names := range s.Steps {
		what := "node " + names[0]
		if len(names) > 1 {
			what = plural(len(names), "node")
		}
		if i > 0 {
			what = "then " + what
		}
		loss, cluster = cluster.Losing(names)
		losses = append(losses, PoolLoss{Lost: what, Loss: loss})
	}
	return losses
}

// cordonedNodes returns the nodes, but with cordoned copies of the named nodes.
func cordonedNodes(nodes []*corev1.Node, names []string) []*corev1.Node {
	nodes = slices.Clone(nodes)
	for i, node := range nodes {
		if slices.Contains(names, node.Name) {
			copied := *node
			copied.Spec.Unschedulable = true
			nodes[i] = &copied
		}
	}
	return nodes
}

// PendingGroup is a group of similar pending pods, with the result of evaluating each pool for
// them.
type PendingGroup struct {
	Namespace string              `json:"namespace"`
	Pods      []string            `json:"pods"`
	Workloads []string            `json:"workloads"`
	Requests  corev1.ResourceList `json:"requests"`
	Pools     []PendingIn         `json:"pools"`
	// Preemption describes how the scheduler would make room for the first pod of the group, or is
	// doing so. It is nil unless [Room.PendingPreempted] has set it.
	Preemption *capacity.Preemption `json:"preemption,omitempty"`
}

// Possible results of evaluating a pool for a group of pending pods.
const (
	// FitsNow means that the pool has room for a pod of the group.
	FitsNow = "FitsNow"
	// FitsEmpty means that a pod of the group would only fit on an empty node of the pool.
	FitsEmpty = "FitsAnEmptyNode"
	// FitsNew means that a pod of the group fits on no existing node of the pool, but would fit on
	// a new node.
	FitsNew = "FitsANewNode"
	// NeverFits means that a pod of the group fits on no node of the pool, not even without other
	// pods.
	NeverFits = "Never"
)

// PendingIn is the result of evaluating one pool for a group of pending pods.
type PendingIn struct {
	Answer  string `json:"answer"` // FitsNow, FitsAnEmptyNode, FitsANewNode or Never
	PoolFit `json:",inline"`
}

// Pending returns the cluster's pending pods, in groups of similar pods.
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
	for _, fit := range r.Fit(first, false, 0) {
		in := PendingIn{Answer: NeverFits, PoolFit: fit}
		switch {
		case in.Copies > 0:
			in.Answer = FitsNow
		case in.OnEmptyNode > 0:
			in.Answer = FitsEmpty
		case in.NewNode != nil && in.NewNode.Copies > 0:
			in.Answer = FitsNew
		}
		shown.Pools = append(shown.Pools, in)
	}
	return shown
}

// WorkloadText names the first workload of a group, and the number of the group's other workloads.
func (g *PendingGroup) WorkloadText() string {
	if more := len(g.Workloads) - 1; more > 0 {
		return g.Workloads[0] + fmt.Sprintf(" and %d more", more)
	}
	return g.Workloads[0]
}

// AnswerText describes whether the group's pods fit into the pool: now, on an empty node, on a new
// node or never. It also returns the severity of this result.
func (in *PendingIn) AnswerText() (string, Severity) {
	switch in.Answer {
	case FitsNow:
		text := fmt.Sprintf("%d now", in.Copies)
		if len(in.AtMost) > 0 {
			text = "at most " + text + " (because of: " + strings.Join(in.AtMost, ", ") + ")"
		}
		return text, Good
	case FitsEmpty:
		return "on an empty node", Warning
	case FitsNew:
		return "on a new node", Warning
	default:
		return "never", Neutral
	}
}
