// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// future tells what nodes come to look like once the controllers have done all
// that a set of pools asks for. It knows no rule of its own: it carries out, in
// thought, what [planNode] says, again and again until that says nothing more.
type future struct {
	// fleet is the model with the pools alone.
	fleet *fleet
}

// rest is one node at the end.
type rest struct {
	node *corev1.Node
	// pools are the names of those that the node is a member of.
	pools []string
	// record is what stands on the node from whom.
	record    record
	conflicts []conflict
	// restless: the end is none. Pools move the node in and out of each other,
	// and the controllers would slow down.
	restless bool
}

func futureOf(pools []*tidekeeperv1.NodePool) future {
	f := newFleet()
	for _, pool := range pools {
		f.setPool(settled(pool))
	}
	return future{f}
}

// settled returns the pool as it is when its controller has looked at it: it
// holds its finalizer, if it is not too late for that, and vouches for all that
// it asks for.
func settled(pool *tidekeeperv1.NodePool) *tidekeeperv1.NodePool {
	pool = pool.DeepCopy()
	if pool.DeletionTimestamp.IsZero() {
		controllerutil.AddFinalizer(pool, tidekeeperv1.NodePoolFinalizer)
	}
	pool.Status.Managed = managedKeys(pool, func(slot) bool { return true })
	return pool
}

// of returns the node at the end. The node itself is not changed.
func (f future) of(node *corev1.Node) rest {
	r := rest{node: node}
	for range fightBurst {
		recorded, _ := parseRecord(r.node.Annotations[tidekeeperv1.RecordAnnotation])
		claims := f.fleet.claims(r.node, recorded)
		r.pools = nil
		for i := range claims {
			// All nodes have had their turn with a taint that evicts.
			claims[i].mayEvict = true
			if claims[i].member {
				r.pools = append(r.pools, claims[i].pool.Name)
			}
		}
		slices.Sort(r.pools)
		plan := planNode(r.node, claims)
		r.conflicts, r.record = plan.conflicts, plan.record
		if plan.empty() {
			return r
		}
		r.node = plan.carriedOut(r.node)
	}
	r.restless = true
	return r
}

// carriedOut returns the node with the plan's patch, as the API server would
// make it. Only what a pool can write is copied; the rest is shared.
func (p *nodePlan) carriedOut(node *corev1.Node) *corev1.Node {
	after := *node
	after.Labels, after.Annotations = maps.Clone(node.Labels), maps.Clone(node.Annotations)
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	for s, value := range p.set {
		switch s.kind {
		case label:
			after.Labels[s.key] = value
		case annotation:
			after.Annotations[s.key] = value
		}
	}
	for s := range p.remove {
		switch s.kind {
		case label:
			delete(after.Labels, s.key)
		case annotation:
			delete(after.Annotations, s.key)
		}
	}
	after.Annotations[tidekeeperv1.RecordAnnotation] = p.record.String()
	if p.record.String() == "" {
		delete(after.Annotations, tidekeeperv1.RecordAnnotation)
	}
	after.Spec.Taints = p.taints(slices.Clone(node.Spec.Taints), time.Time{})
	return &after
}
