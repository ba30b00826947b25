// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state/load"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state/room"
)

// PoolNames returns the sorted names of all pools.
func (c *Cluster) PoolNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.graph.pools))
}

// PoolSnapshot is the state of a pool in the model at the time of a query.
type PoolSnapshot struct {
	Pool *tidekeeperv1.NodePool
	// Invalid is the error caused by the pool's selector, or nil if the selector is valid.
	Invalid error

	Nodes, Ready                     int
	Capacity, Allocatable, Requested corev1.ResourceList
	Percent                          map[corev1.ResourceName]int32

	// UsableNodes is the number of nodes that accept new pods. Report describes the free resources
	// on these nodes.
	UsableNodes int
	room.Report

	// StatusWritten is the time at which this process last wrote the pool's status. It is zero
	// before the first write.
	StatusWritten time.Time

	// Outdated is the number of members that do not match the pool's spec yet. EvictionPending is
	// the number of these members that wait for permission to get a NoExecute taint or to be closed
	// to new pods for it.
	Outdated, EvictionPending int
	// Emptying is the number of members that are being emptied within budgets. Blocked is the
	// number of these members that count as blocked, because no pod has left for a long time.
	// LongestBlocked describes the member that has been blocked for the longest time, or is nil if
	// there is none.
	Emptying, Blocked int
	LongestBlocked    *tidekeeperv1.BlockedNode
	// HeldBackBy describes the Freeze that holds back the pool's NoExecute taints and evictions. It
	// is empty if there is none. It is set by the caller, not by [Cluster.Pool].
	HeldBackBy string

	// Planning reports whether nodes wait for new plans because of a change of the pool. The numbers
	// above, and the conflicts, may then be those of before.
	Planning bool

	// Conflicted is the number of members on which an older pool sets a key to another value than
	// this pool's spec. FirstConflict is an example.
	Conflicted    int
	FirstConflict plan.Conflict

	// OwnedNodes is the number of nodes whose ownership annotation names the pool. While the pool
	// is being deleted, it is the number of nodes that the deletion waits for. OwnedKeys is the set
	// of keys that ownership annotations record for the pool.
	OwnedNodes int
	OwnedKeys  sets.Set[setting.Key]
	// Writing reports whether a node whose plan includes the pool is currently being written.
	Writing bool

	// Refused is the number of nodes to which the pool's settings cannot be written. RefusedNode is
	// an example; RefusedReason is the reason why it cannot be written.
	Refused                    int
	RefusedNode, RefusedReason string
}

// Pool returns the current state of a pool, and whether a pool with that name exists.
func (c *Cluster) Pool(name string) (PoolSnapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, known := c.graph.pools[name]
	if !known {
		return PoolSnapshot{}, false
	}
	v := PoolSnapshot{
		Pool:            p.object,
		Invalid:         p.invalid,
		Nodes:           len(p.members),
		StatusWritten:   p.statusWritten,
		Outdated:        len(p.plans.outdated),
		EvictionPending: len(p.turns.pending),
		Conflicted:      len(p.plans.conflicts),
		OwnedNodes:      len(c.graph.owners.nodes(name)),
		OwnedKeys:       c.graph.owners.keys(name),
		Writing:         p.writes.inProgress > 0,
		Planning:        c.graph.backlog.waits(name),
	}
	if !p.object.DeletionTimestamp.IsZero() {
		v.OwnedNodes = c.graph.nodesToClean(p)
	}
	p.sums.report(&v)
	v.UsableNodes = v.Nodes - v.LostNodes
	p.report(&v)
	p.reportEmptying(c.graph.nodes, &v)
	return v, true
}

// HeadroomAsk describes a pool whose spec requires headroom, as input for an evaluation.
type HeadroomAsk struct {
	Name       string
	UID        types.UID
	Generation int64
	Headroom   tidekeeperv1.Headroom
	// Members lists the sorted names of the pool's member nodes.
	Members []string
}

// HeadroomAsks returns the pools whose specs require headroom, and the cluster to evaluate. Both
// are nil if there are no such pools, or if the model's change counter still equals `since`.
// changes is the current value of the counter.
func (c *Cluster) HeadroomAsks(since uint64) (asks []HeadroomAsk, cluster *capacity.Cluster, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &c.graph
	if g.roomChanges == since {
		return nil, nil, since
	}
	for name, p := range g.pools {
		if p.object.Spec.Headroom != nil && p.object.DeletionTimestamp.IsZero() && p.invalid == nil {
			asks = append(asks, HeadroomAsk{name, p.object.UID, p.object.Generation, *p.object.Spec.Headroom, sets.List(p.members)})
		}
	}
	if len(asks) == 0 {
		return nil, nil, g.roomChanges
	}
	return asks, capacityOf(g.nodes, g.loads), g.roomChanges
}

// capacityOf converts the nodes and their pods to a [capacity.Cluster] for simulations, which need
// the individual pods rather than sums.
func capacityOf(nodes map[string]*node, loads *load.Nodes) *capacity.Cluster {
	list := make([]*corev1.Node, 0, len(nodes))
	for _, n := range nodes {
		list = append(list, n.object)
	}
	cluster := capacity.New(list, nil)
	examples := map[*load.Profile]*corev1.Pod{}
	for name, l := range loads.All() {
		profiles := maps.Collect(l.Pods())
		// The profiles are sorted so that the result is deterministic.
		for _, p := range slices.SortedFunc(maps.Keys(profiles), load.Compare) {
			if examples[p] == nil {
				examples[p] = p.Example()
			}
			cluster.Add(name, examples[p], p.Requests, profiles[p])
		}
	}
	return cluster
}
