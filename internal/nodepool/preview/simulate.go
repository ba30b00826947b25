// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Simulator finds out what nodes look like once the controllers have done all that a set
// of pools asks for. It has no rules of its own: it applies what [ForNode] says again and
// again, until that says nothing more.
type Simulator struct {
	pools []simulatedPool
}

type simulatedPool struct {
	pool *tidekeeperv1.NodePool
	// selector is nil if the pool's cannot be used.
	selector labels.Selector
}

// Result is a node at the end of a simulation.
type Result struct {
	Node *corev1.Node
	// pools are the names of those that the node is a member of.
	pools     []string
	ownership ownership.Record
	conflicts []plan.Conflict
	// neverSettles reports that there is no end: pools add the node to each other and
	// remove it again, and the controllers would throttle their patches.
	neverSettles bool
}

// NewSimulator returns a simulator of these pools.
func NewSimulator(pools []*tidekeeperv1.NodePool) *Simulator {
	s := &Simulator{}
	for _, pool := range pools {
		selector, err := plan.Selector(pool)
		if err != nil {
			selector = nil
		}
		s.pools = append(s.pools, simulatedPool{asReconciled(pool), selector})
	}
	return s
}

// asReconciled returns the pool as it is when its controller has looked at it: it
// holds its finalizer, if it is not too late for that, and vouches for all that
// it asks for.
func asReconciled(pool *tidekeeperv1.NodePool) *tidekeeperv1.NodePool {
	pool = pool.DeepCopy()
	if pool.DeletionTimestamp.IsZero() {
		if !slices.Contains(pool.Finalizers, tidekeeperv1.NodePoolFinalizer) {
			pool.Finalizers = append(pool.Finalizers, tidekeeperv1.NodePoolFinalizer)
		}
	}
	pool.Status.Managed = plan.ManagedKeys(pool, func(setting.Key) bool { return true })
	return pool
}

// Run returns the node at the end. It does not change the node that it is given.
func (s *Simulator) Run(node *corev1.Node) Result {
	r := Result{Node: node}
	for range plan.WriteBurst {
		recorded, _ := ownership.Parse(r.Node.Annotations[tidekeeperv1.OwnershipAnnotation])
		var pools []plan.PoolOnNode
		r.pools = nil
		for _, p := range s.pools {
			selected := p.selector != nil && p.selector.Matches(labels.Set(r.Node.Labels))
			if _, owns := recorded[p.pool.Name]; !selected && !owns {
				continue
			}
			// Every node has had its turn to get a NoExecute taint.
			on := plan.PoolOnNode{Pool: p.pool, Member: selected && p.pool.DeletionTimestamp.IsZero(), MayEvict: true}
			pools = append(pools, on)
			if on.Member {
				r.pools = append(r.pools, p.pool.Name)
			}
		}
		slices.Sort(r.pools)
		nodePlan := plan.ForNode(r.Node, pools)
		r.conflicts, r.ownership = nodePlan.Conflicts, nodePlan.Ownership
		if nodePlan.Empty() {
			return r
		}
		r.Node = nodePlan.ApplyTo(r.Node, time.Time{})
	}
	r.neverSettles = true
	return r
}
