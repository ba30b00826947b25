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

// Simulator computes the final state of nodes after the controllers have applied a set of pools. It
// has no rules of its own: it applies the plans of [plan.ForNode] until a plan is empty.
type Simulator struct {
	pools []simulatedPool
}

type simulatedPool struct {
	pool *tidekeeperv1.NodePool
	// selector is the parsed selector of the pool, or nil if the selector is invalid.
	selector labels.Selector
}

// Result is the simulated final state of a node.
type Result struct {
	Node *corev1.Node
	// pools lists the names of the pools that the node is a member of.
	pools     []string
	ownership ownership.Record
	conflicts []plan.Conflict
	// gentle lists the NoExecute taints that pools add to the node only after the affected pods
	// have been evicted within their PodDisruptionBudgets.
	gentle []corev1.Taint
	// neverSettles is true if the simulation found no final state, because the pools' labels
	// repeatedly change which pools select the node. The controllers would throttle the patches of
	// such a node.
	neverSettles bool
}

// NewSimulator returns a simulator for the given pools.
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

// asReconciled returns a copy of the pool in the state in which the pool controller would leave it.
// The copy manages all keys of its spec, and has its finalizer unless it is being deleted.
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

// Run simulates the controllers until the node reaches its final state, or for at most
// [plan.WriteBurst] patches. The given node is not modified.
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
			// In the final state, every node may have all of its NoExecute taints, and has been
			// emptied for them.
			on := plan.PoolOnNode{Pool: p.pool, Member: selected && p.pool.DeletionTimestamp.IsZero(), MayEvict: true, Emptied: true}
			pools = append(pools, on)
			if on.Member {
				r.pools = append(r.pools, p.pool.Name)
			}
		}
		slices.Sort(r.pools)
		nodePlan := plan.ForNode(r.Node, pools)
		r.conflicts, r.ownership = nodePlan.Conflicts, nodePlan.Ownership
		if nodePlan.Empty() {
			r.gentle = s.gentleTaints(r)
			return r
		}
		r.Node = nodePlan.ApplyTo(r.Node, time.Time{})
	}
	r.neverSettles = true
	return r
}

// gentleTaints returns the NoExecute taints of the node that pools add only after emptying the node
// within budgets.
func (s *Simulator) gentleTaints(r Result) (taints []corev1.Taint) {
	for _, on := range r.Node.Spec.Taints {
		for _, p := range s.pools {
			_, has := r.ownership[p.pool.Name][setting.TaintKey(on.Key, on.Effect)]
			if t := plan.TaintOf(p.pool, &on); has && t != nil && t.Eviction == tidekeeperv1.TaintEvictionWithinBudgets {
				taints = append(taints, on)
			}
		}
	}
	return taints
}
