// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// PoolOnNode is a pool that takes part in a node's plan, and its permissions there.
type PoolOnNode struct {
	Pool *tidekeeperv1.NodePool
	// Member is true if the pool selects the node and is not being deleted.
	Member bool
	// MayEvict is true if the pool may add NoExecute taints to this node now.
	MayEvict bool
	// FormerlyManaged are keys that this pool, or a deleted pool of the same name, managed in
	// the past. A delayed write may have put them on the node since.
	FormerlyManaged sets.Set[setting.Key]
}

// ForNode decides which settings to write to a node. pools are all pools that select the node,
// and all existing pools in its ownership record, in any order.
//
// Rules, in order of precedence:
//   - If two member pools ask for the same key, the older pool gets it.
//   - A setting is put on a node only if the pool has its finalizer and the key is among its
//     managed keys, so that it is removed again whatever crashes. Until then no pool sets
//     the key: a younger pool that is faster must not get it in the meantime.
//   - A value that the node already has is not recorded as the pool's, and stays when the
//     pool is deleted. Any other value is replaced.
//   - A recorded setting that no pool asks for any more is removed, if its pool manages the
//     key and the value is still the recorded value: a forged record removes nothing, and a
//     value that another client wrote over it stays. A taint that the pool replaces by a
//     NoExecute taint of the same key stays until the NoExecute taint may be added, so that
//     the node is not open to pods meanwhile.
//   - A setting that is recorded for a pool that does not exist stays, and so does its
//     record, as no pool manages the key; unless a pool of that name is known to have
//     managed it.
//   - The annotations of a node have a size limit. A pool that does not fit sets nothing on
//     the node, and the others, older or younger, are not affected.
func ForNode(node *corev1.Node, pools []PoolOnNode) NodePlan {
	return ForNodeExcept(node, pools, nil)
}

// ForNodeExcept is [ForNode] with some pools frozen, by name: their settings are neither added
// nor removed.
func ForNodeExcept(node *corev1.Node, pools []PoolOnNode, frozen sets.Set[string]) NodePlan {
	pools = slices.SortedFunc(slices.Values(pools), func(a, b PoolOnNode) int { return ByPrecedence(a.Pool, b.Pool) })
	nodePlan := planWith(node, pools, frozen, nil)
	if nodePlan.fits(node) {
		return nodePlan
	}
	return planWithinLimit(node, pools, frozen, &nodePlan)
}

// planWith plans with some pools frozen, and some pools left out: no setting of a left out pool
// is put on the node, but settings that it no longer asks for are removed.
func planWith(node *corev1.Node, pools []PoolOnNode, frozen, leftOut sets.Set[string]) NodePlan {
	p := planner{
		node: node, pools: pools, frozen: frozen, leftOut: leftOut, pending: map[setting.Key]string{},
		plan: NodePlan{
			Set: map[setting.Key]string{}, Remove: sets.Set[setting.Key]{}, Ownership: ownership.Record{},
			Read: sets.New(setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation)),
		},
	}
	var err error
	if p.recorded, err = ownership.Parse(node.Annotations[tidekeeperv1.OwnershipAnnotation]); err != nil {
		p.recorded = p.inferOwnership()
	}
	winners := p.resolve()
	for key, w := range winners {
		p.write(key, w)
	}
	p.remove(winners)
	p.finish()
	return p.plan
}

// planner computes the plan for a node.
type planner struct {
	node *corev1.Node
	// pools are in order of precedence.
	pools           []PoolOnNode
	frozen, leftOut sets.Set[string]
	// recorded is the ownership record of the node. The values on the node are read by the
	// method has.
	recorded ownership.Record
	// pending has the keys that must not be added yet, with the pool that asks for each.
	pending map[setting.Key]string

	plan NodePlan
}

// has returns the node's value for a key, and notes that the plan depends on it.
func (p *planner) has(key setting.Key) (value string, exists bool) {
	p.plan.Read.Insert(key)
	return setting.Value(p.node, key)
}

// winner is the pool that gets a key, with the value in its spec.
type winner struct {
	PoolOnNode
	value string
}

// resolve returns, for each key that a member pool asks for, the winning pool, and notes the
// conflicts.
func (p *planner) resolve() map[setting.Key]winner {
	winners := map[setting.Key]winner{}
	for _, pool := range p.pools {
		if !pool.Member {
			continue
		}
		for key, value := range setting.Desired(pool.Pool) {
			if first, taken := winners[key]; !taken {
				winners[key] = winner{pool, value}
			} else if first.value != value {
				p.plan.Conflicts = append(p.plan.Conflicts,
					Conflict{Pool: pool.Pool.Name, Owner: first.Pool.Name, Node: p.node.Name, Key: key})
			}
		}
	}
	return winners
}

// write decides whether to set a key to its winner's value, and which owner to record for it.
func (p *planner) write(key setting.Key, w winner) {
	pool := w.Pool.Name
	actual, exists := p.has(key)
	mayManage := IsActive(w.Pool) && setting.Manages(w.Pool, key)
	switch {
	case p.frozen.Has(pool) || p.leftOut.Has(pool):
		if !exists || actual != w.value {
			p.plan.Outdated = append(p.plan.Outdated, pool)
		}
		p.keepOwnership(key)
	case exists && actual == w.value:
		// A value that was put there by a pool passes to the pool that asks for it now, but
		// only once that pool manages the key: otherwise no pool might manage it.
		switch {
		case !p.recorded.Owns(key, actual):
		case mayManage:
			p.plan.Ownership.Add(pool, key, actual)
		default:
			p.keepOwnership(key)
		}
	case !mayManage:
		p.plan.Outdated = append(p.plan.Outdated, pool)
		p.pending[key] = pool
		p.keepOwnership(key)
	case key.IsNoExecute() && !w.MayEvict:
		p.plan.EvictionPending = append(p.plan.EvictionPending, pool)
		p.pending[key] = pool
		p.keepOwnership(key)
	default:
		p.plan.Set[key] = w.value
		p.plan.Ownership.Add(pool, key, w.value)
		p.plan.Changes = append(p.plan.Changes, Change{pool, key, p.changeKind(key, w)})
		if key.IsNoExecute() {
			p.plan.Evicting = append(p.plan.Evicting, pool)
		}
	}
}

// changeKind returns the kind of the change that sets a key to its winner's value.
func (p *planner) changeKind(key setting.Key, w winner) ChangeKind {
	recorded, owned := p.recorded[w.Pool.Name][key]
	actual, exists := p.has(key)
	switch {
	case owned && recorded == ownership.DigestOf(key, w.value):
		return Restored
	case owned:
		return Updated
	case exists && !p.recorded.Owns(key, actual):
		return Replaced
	default:
		return Added
	}
}

// remove decides which recorded settings without a winner are removed from the node.
func (p *planner) remove(winners map[setting.Key]winner) {
	for pool, settings := range p.recorded {
		i := slices.IndexFunc(p.pools, func(on PoolOnNode) bool { return on.Pool.Name == pool })
		for key, recorded := range settings {
			if _, wanted := winners[key]; wanted {
				continue
			}
			manages := i >= 0 && setting.Manages(p.pools[i].Pool, key)
			switch {
			case p.frozen.Has(pool), p.pending[key.NoExecute()] == pool:
				p.plan.Ownership.Put(pool, key, recorded)
				continue
			case !manages && (i < 0 || !p.pools[i].FormerlyManaged.Has(key)):
				// A pool that is being deleted and does not manage the key cannot have put it
				// there: the record is dropped. For other pools the record is kept.
				if i < 0 || p.pools[i].Pool.DeletionTimestamp == nil {
					p.plan.Ownership.Put(pool, key, recorded)
				}
				continue
			case !manages:
				p.plan.Orphaned = append(p.plan.Orphaned, Change{pool, key, Removed})
			}
			if actual, exists := p.has(key); exists && ownership.DigestOf(key, actual) == recorded {
				p.plan.Remove.Insert(key)
				p.plan.Changes = append(p.plan.Changes, Change{pool, key, Removed})
			}
		}
	}
}

// keepOwnership keeps the record of a key that cannot be written yet.
func (p *planner) keepOwnership(key setting.Key) {
	for pool, settings := range p.recorded {
		if digest, ok := settings[key]; ok {
			p.plan.Ownership.Put(pool, key, digest)
		}
	}
}

// inferOwnership returns a record for a node whose own record cannot be parsed: settings that
// are both in a pool's spec and on the node are attributed to that pool. The existence of the
// annotation shows that pools were applied to the node before.
func (p *planner) inferOwnership() ownership.Record {
	r := ownership.Record{}
	for _, pool := range p.pools {
		for key, value := range setting.Desired(pool.Pool) {
			if actual, exists := p.has(key); exists && actual == value {
				r.Add(pool.Pool.Name, key, value)
			}
		}
	}
	return r
}

// finish derives the remaining fields of the plan from its changes, and sorts its lists.
func (p *planner) finish() {
	plan := &p.plan
	for _, c := range plan.Changes {
		plan.Outdated = append(plan.Outdated, c.Pool)
	}
	plan.Outdated = append(plan.Outdated, plan.EvictionPending...)
	plan.Outdated = sortedSet(slices.DeleteFunc(plan.Outdated, func(pool string) bool {
		return !slices.ContainsFunc(p.pools, func(on PoolOnNode) bool { return on.Member && on.Pool.Name == pool })
	}))
	plan.EvictionPending = sortedSet(plan.EvictionPending)
	plan.Evicting = sortedSet(plan.Evicting)
	slices.SortFunc(plan.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), setting.Compare(a.Key, b.Key))
	})
	slices.SortFunc(plan.Conflicts, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), setting.Compare(a.Key, b.Key))
	})
	plan.ownershipText = plan.Ownership.String()
	plan.OwnershipChanged = plan.ownershipText != p.node.Annotations[tidekeeperv1.OwnershipAnnotation]
	for _, on := range p.pools {
		pool := on.Pool.Name
		if !maps.Equal(p.recorded[pool], plan.Ownership[pool]) ||
			slices.ContainsFunc(plan.Changes, func(c Change) bool { return c.Pool == pool }) {
			plan.Affected = append(plan.Affected, pool)
		}
		if on.Pool.DeletionTimestamp != nil {
			plan.BeingDeleted = append(plan.BeingDeleted, pool)
		}
	}
}

// sortedSet returns the names sorted and without duplicates.
func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
