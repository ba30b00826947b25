// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// NewNodeFit describes how many copies of a pod fit on nodes that are added to a pool by its
// spec.nodeTemplate.
type NewNodeFit struct {
	// Copies is the number of copies of the pod that fit on a single new node, in addition to the
	// pods of DaemonSets.
	Copies int64 `json:"copies"`
	// AtMost lists the pod constraints that were not evaluated. If it is not empty, Copies is an
	// upper bound.
	AtMost []string `json:"atMost,omitempty"`
	// Refused explains why no copy of the pod fits on a new node. It is empty if copies fit.
	Refused string `json:"refused,omitempty"`
	// Needed is the number of new nodes that are needed for the number of copies that the user
	// specified. It is -1 if even [MostNewNodes] new nodes are not enough, and nil if the user
	// specified no number of copies.
	Needed *int `json:"needed,omitempty"`
}

// MostNewNodes is the largest number of new nodes of a pool that is evaluated.
const MostNewNodes = 1000

// daemonSetsUnknown is listed in [NewNodeFit.AtMost] if the DaemonSets of a new node are not known.
const daemonSetsUnknown = "DaemonSets of new nodes"

// HasTemplate reports whether any pool has a nodeTemplate. [Room.DaemonSets] is needed only for
// such pools.
func (r *Room) HasTemplate() bool {
	return slices.ContainsFunc(r.Pools, func(p PoolMembers) bool { return p.Spec.NodeTemplate != nil })
}

// extended is a cluster to which a new node of a pool was added, and the name of this node.
type extended struct {
	cluster *capacity.Cluster
	node    []string
}

// extendedBy is the key of a cached extended cluster, the result of [Room.withNewNode].
type extendedBy struct {
	pool string
	// others is true if the extended cluster also contains the existing nodes and pods.
	others bool
}

// withNewNode returns a cluster with a new node of the given pool. Usually, the new node is the
// only node, because such a cluster is cheap to build. The cluster contains the existing nodes and
// pods only if the pod has constraints that depend on other pods.
func (r *Room) withNewNode(pool PoolMembers, pod *corev1.Pod) (extended, error) {
	by := extendedBy{pool.Name, r.Cluster.IsConstrained(pod)}
	if known, ok := r.extended[by]; ok {
		return known, nil
	}
	of := Room{DaemonSets: r.DaemonSets, volumes: r.volumes, devices: r.devices}
	if by.others {
		of.Nodes, of.Pods = r.Nodes, r.Pods
	}
	cluster, names, err := of.withNewNodes(pool, 1)
	if err != nil {
		return extended{}, err
	}
	if r.extended == nil {
		r.extended = map[extendedBy]extended{}
	}
	r.extended[by] = extended{cluster, names}
	return r.extended[by], nil
}

// onNewNodes evaluates how many copies of a pod fit on new nodes of a pool. wanted is the number of
// copies that the user needs, or 0. `now` describes how many copies fit on the pool's existing
// nodes. The result is nil if the pool has no nodeTemplate.
func (r *Room) onNewNodes(pool PoolMembers, pod *corev1.Pod, wanted int64, now *capacity.Fit) *NewNodeFit {
	if pool.Spec.NodeTemplate == nil {
		return nil
	}
	with, err := r.withNewNode(pool, pod)
	if err != nil {
		return &NewNodeFit{Refused: err.Error()}
	}
	one := with.cluster.Members(with.node).Fit(pod)
	fit := &NewNodeFit{Copies: one.Copies, AtMost: one.AtMost}
	if r.DaemonSets == nil {
		fit.AtMost = append(slices.Clone(fit.AtMost), daemonSetsUnknown)
	}
	if one.Copies == 0 {
		fit.Refused = CountsText(one.Refused)
	}
	if wanted > 0 {
		fit.Needed = new(r.nodesNeeded(pool, pod, wanted, now, &one))
	}
	return fit
}

// nodesNeeded returns the number of new nodes that are needed so that `wanted` copies of a pod fit,
// or -1 if even MostNewNodes are not enough. `now` describes how many copies fit on the existing
// nodes, and `one` how many fit on a single new node.
func (r *Room) nodesNeeded(pool PoolMembers, pod *corev1.Pod, wanted int64, now, one *capacity.Fit) int {
	missing := wanted - now.Copies
	switch {
	case missing <= 0:
		return 0
	case one.Copies == 0:
		return -1
	case !r.Cluster.IsConstrained(pod):
		if n := (missing + one.Copies - 1) / one.Copies; n <= MostNewNodes {
			return int(n)
		}
		return -1
	}
	enough := func(count int) bool {
		cluster, names, err := r.withNewNodes(pool, count)
		return err == nil && cluster.Members(slices.Concat(pool.Members, names)).Fit(pod).Copies >= wanted
	}
	if !enough(MostNewNodes) {
		return -1
	}
	return 1 + sort.Search(MostNewNodes-1, func(i int) bool { return enough(i + 1) })
}

// withNewNodes returns the cluster with `count` new nodes of a pool, and the names of the new
// nodes.
func (r *Room) withNewNodes(pool PoolMembers, count int) (cluster *capacity.Cluster, names []string, err error) {
	of := Room{Nodes: slices.Clone(r.Nodes), Pods: slices.Clone(r.Pods), DaemonSets: r.DaemonSets, volumes: r.volumes, devices: r.devices}
	names, err = of.add(pool, count)
	if err != nil {
		return nil, nil, err
	}
	return r.newCluster(of.Nodes, of.Pods), names, nil
}

// add adds new nodes of a pool to r.Nodes, and their DaemonSet pods to r.Pods. It returns the names
// of the new nodes. It does not change r.Cluster or the pool's members.
func (r *Room) add(pool PoolMembers, count int) (names []string, err error) {
	for i := range count {
		// The name contains spaces, so it cannot equal the name of an existing node.
		node, err := plan.NewNode(pool.NodePool, fmt.Sprintf("new node %d of %s", i+1, pool.Name))
		if err != nil {
			return nil, err
		}
		names = append(names, node.Name)
		r.Nodes, r.Pods = append(r.Nodes, node), append(r.Pods, capacity.DaemonSetPods(node, r.DaemonSets)...)
	}
	return names, nil
}

// AddNewNodes adds new nodes to a pool. All later evaluations by r include the new nodes.
func (r *Room) AddNewNodes(pool string, count int) error {
	i := slices.IndexFunc(r.Pools, func(p PoolMembers) bool { return p.Name == pool })
	switch {
	case i < 0:
		return fmt.Errorf("there is no NodePool %q", pool)
	case r.Pools[i].Spec.NodeTemplate == nil:
		return fmt.Errorf("NodePool %s has no spec.nodeTemplate, which describes its new nodes", pool)
	}
	names, err := r.add(r.Pools[i], count)
	if err != nil {
		return fmt.Errorf("NodePool %s: %w", pool, err)
	}
	r.Pools[i].Members = append(r.Pools[i].Members, names...)
	r.Cluster, r.extended = r.newCluster(r.Nodes, r.Pods), nil
	return nil
}

// CopiesText formats the number of copies of a pod that fit on a new node. It returns "-" if the
// pool has no nodeTemplate.
func (f *NewNodeFit) CopiesText() string {
	switch {
	case f == nil:
		return "-"
	case f.Copies == 0 && f.Refused != "":
		return "0: " + f.Refused
	case len(f.AtMost) > 0:
		return "at most " + strconv.FormatInt(f.Copies, 10) + " (because of: " + strings.Join(f.AtMost, ", ") + ")"
	default:
		return strconv.FormatInt(f.Copies, 10)
	}
}

// NeededText formats the number of new nodes that are needed for the number of copies that the user
// specified. It returns "-" if the number of nodes was not computed.
func (f *NewNodeFit) NeededText() string {
	switch {
	case f == nil || f.Needed == nil:
		return "-"
	case *f.Needed < 0:
		return fmt.Sprintf("not with %d", MostNewNodes)
	case len(f.AtMost) > 0 && *f.Needed > 0:
		return fmt.Sprintf("at least %d", *f.Needed)
	default:
		return strconv.Itoa(*f.Needed)
	}
}
