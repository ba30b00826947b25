// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// PoolOnNode is an input of a node's plan: a pool, and the pool's permissions on the node.
type PoolOnNode struct {
	Pool *tidekeeperv1.NodePool
	// Member is true if the pool selects the node and is not being deleted.
	Member bool
	// MayEvict is true if the pool may now add NoExecute taints to the node, or close the node to
	// new pods for such taints. TurnAt is the time at which the pool was permitted to do so.
	MayEvict bool
	TurnAt   time.Time
	// Emptied is true if the pool's NoExecute taints with the eviction WithinBudgets would delete
	// no pod on the node.
	Emptied bool
	// FormerlyManaged is the set of keys that this pool, or a deleted pool with the same name,
	// managed in the past. A delayed write may have set them on the node after the pool stopped
	// managing them.
	FormerlyManaged sets.Set[setting.Key]
}

// ForNode decides which settings to write to a node. pools contains, in any order, all pools that
// select the node, and all existing pools named in the node's ownership record.
//
// Rules, in order of precedence:
//   - If two member pools specify the same key, the older pool gets it.
//   - A setting is added to a node only if the pool has its finalizer, and lists the key among the
//     managed keys in its status. The setting is then removed again even after a crash. As long as
//     the pool lacks either, no pool sets the key, not even a younger pool that specifies it.
//   - A value that the node already had is not recorded as the pool's, and is kept when the pool is
//     deleted. Any other value is replaced.
//   - A recorded setting that no pool specifies any longer is removed if its pool manages the key
//     and the value is still the recorded value. A forged record therefore removes nothing, and a
//     value that another client has written since is kept. A taint that the pool replaces with a
//     NoExecute taint of the same key is kept until the NoExecute taint may be added. Otherwise,
//     new pods would be scheduled to the node in the meantime.
//   - For a NoExecute taint with the eviction WithinBudgets, the node is first closed to new pods,
//     as soon as the pool may evict pods from it. The taint is added once the node has been emptied
//     (see closing.go).
//   - A setting recorded for a pool that does not exist is kept, as is its ownership entry, because
//     no pool manages the key. The setting is removed if a pool of that name is known to have
//     managed the key.
//   - The annotations of a node have a size limit. A pool whose annotations do not fit sets nothing
//     on the node. Other pools, older or younger, are not affected.
func ForNode(node *corev1.Node, pools []PoolOnNode) NodePlan {
	return ForRecorded(node, ownership.Read(node.Annotations[tidekeeperv1.OwnershipAnnotation]), pools, nil)
}

// ForRecorded is like [ForNode], for callers that have parsed the node's ownership annotation. It
// neither adds nor removes settings of the pools named in `frozen`.
func ForRecorded(node *corev1.Node, recorded ownership.Annotation, pools []PoolOnNode, frozen sets.Set[string]) NodePlan {
	pools = slices.SortedFunc(slices.Values(pools), func(a, b PoolOnNode) int { return ByPrecedence(a.Pool, b.Pool) })
	in := input{node: node, recorded: recorded, pools: pools, frozen: frozen}
	nodePlan := in.plan(nil)
	if nodePlan.fits(node) {
		return nodePlan
	}
	return in.planWithinLimit(&nodePlan)
}

// input is what the plan of a node is computed from. The plan neither adds nor removes settings of
// the pools named in `frozen`.
type input struct {
	node     *corev1.Node
	recorded ownership.Annotation
	// pools lists the pools to consider, in order of precedence.
	pools  []PoolOnNode
	frozen sets.Set[string]
}

// plan returns a plan for which some pools are left out. A pool that is left out adds no settings to
// the node, but settings that are no longer in its spec are removed.
func (in input) plan(leftOut sets.Set[string]) NodePlan {
	p := planner{
		node: in.node, pools: in.pools, frozen: in.frozen, leftOut: leftOut, pending: map[setting.Key]string{},
		recorded: in.recorded.Record, closed: in.recorded.Closed,
		plan: NodePlan{
			Set: map[setting.Key]string{}, Remove: sets.Set[setting.Key]{}, Ownership: ownership.Record{},
			Read: sets.New(setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation)),
		},
	}
	if in.recorded.Err != nil {
		p.recorded = p.inferOwnership()
	}
	winners := p.resolve()
	p.close(winners)
	for key, w := range winners {
		p.write(key, w)
	}
	p.remove(winners)
	p.finish()
	return p.plan
}

// planner holds the intermediate state while the plan of a node is computed.
type planner struct {
	node *corev1.Node
	// pools lists the pools to consider, in order of precedence.
	pools           []PoolOnNode
	frozen, leftOut sets.Set[string]
	// recorded is the content of the node's ownership annotation. The node's current values must be
	// read by [planner.has], which records that the plan depends on them.
	recorded ownership.Record
	// closed holds, by pool and taint key, the times at which pools closed the node to new pods. It
	// is parsed from the ownership annotation.
	closed ownership.Closed
	// pending maps each key that must not be added yet to the name of the pool that specifies it.
	pending map[setting.Key]string

	plan NodePlan
}

// has returns the node's value for a key, and adds the key to plan.Read, because the plan depends
// on the value.
func (p *planner) has(key setting.Key) (value string, exists bool) {
	p.plan.Read.Insert(key)
	return setting.Value(p.node, key)
}

// winner is the pool that takes precedence for a key, together with its value for the key.
type winner struct {
	*PoolOnNode
	value string
	// closing is true if the value is for a closing taint, which the pool's spec does not contain.
	closing bool
}

// resolve returns, for each key specified by a member pool, the pool that takes precedence. It adds
// an entry to plan.Conflicts for each other pool that specifies a different value.
func (p *planner) resolve() map[setting.Key]winner {
	winners := map[setting.Key]winner{}
	for i := range p.pools {
		pool := &p.pools[i]
		if !pool.Member {
			continue
		}
		for key, value := range setting.Desired(pool.Pool) {
			if first, taken := winners[key]; !taken {
				winners[key] = winner{PoolOnNode: pool, value: value}
			} else if first.value != value {
				p.plan.Conflicts = append(p.plan.Conflicts,
					Conflict{Pool: pool.Pool.Name, Owner: first.Pool.Name, Node: p.node.Name, Key: key})
			}
		}
	}
	return winners
}

// write decides whether to set a key to the value of its winner, the pool that takes precedence for
// the key, and which pool to record as the key's owner.
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
	case p.keepsForeign(key, w):
		p.keepOwnership(key)
	case exists && actual == w.value:
		// If another pool set the value, ownership passes to the winner only once the winner
		// manages the key. Otherwise, the key might not be managed by any pool, and the setting
		// would never be removed.
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
	case key.IsNoExecute() && isWithinBudgets(w.Pool, key):
		p.writeWithinBudgets(key, w)
	case key.IsNoExecute() && !w.MayEvict:
		p.plan.EvictionPending = append(p.plan.EvictionPending, pool)
		p.pending[key] = pool
		p.keepOwnership(key)
	default:
		p.set(key, w)
	}
}

// set adds a key with its winner's value to the settings that the plan writes to the node.
func (p *planner) set(key setting.Key, w winner) {
	pool := w.Pool.Name
	p.plan.Set[key] = w.value
	p.plan.Ownership.Add(pool, key, w.value)
	p.plan.Changes = append(p.plan.Changes, Change{pool, key, p.changeKind(key, w)})
	if key.IsNoExecute() {
		p.plan.Evicting = append(p.plan.Evicting, pool)
	}
}

// changeKind returns the kind of change that results from setting a key to the value of its winner,
// the pool that takes precedence for the key.
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

// remove decides which of the recorded settings to remove from the node, among those whose key no
// member pool specifies.
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
				// A pool that is being deleted and does not manage the key cannot have set the
				// value, so its ownership entry is dropped. Entries of other pools are kept.
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

// keepOwnership copies the recorded owner of a key to the plan. It is called for keys whose owner
// the plan must not change.
func (p *planner) keepOwnership(key setting.Key) {
	for pool, settings := range p.recorded {
		if digest, ok := settings[key]; ok {
			p.plan.Ownership.Put(pool, key, digest)
		}
	}
}

// inferOwnership returns a replacement for an ownership annotation that cannot be parsed. The
// existence of the annotation shows that pools were applied to the node before, so each setting on
// the node that equals a pool's setting is attributed to that pool.
func (p *planner) inferOwnership() ownership.Record {
	r := ownership.Record{}
	for _, pool := range p.pools {
		infer := func(key setting.Key, value string) {
			if actual, exists := p.has(key); exists && actual == value {
				r.Add(pool.Pool.Name, key, value)
			}
		}
		for key, value := range setting.Desired(pool.Pool) {
			infer(key, value)
		}
		for t := range closingTaints(pool.Pool) {
			infer(setting.TaintKey(t.Key, t.Effect), t.Value)
		}
	}
	return r
}

// finish fills in the plan's fields that derive from its changes, and sorts its lists.
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
	slices.SortFunc(plan.Emptying, compareTaints)
	slices.SortFunc(plan.Emptied, compareTaints)
	plan.recordOnly = len(plan.Set) == 0 && len(plan.Remove) == 0 && plan.OwnershipText() != p.node.Annotations[tidekeeperv1.OwnershipAnnotation]
	for _, on := range p.pools {
		pool := on.Pool.Name
		if !maps.Equal(p.recorded[pool], plan.Ownership[pool]) || !maps.Equal(p.closed[pool], plan.Closed[pool]) ||
			slices.ContainsFunc(plan.Changes, func(c Change) bool { return c.Pool == pool }) {
			plan.Affected = append(plan.Affected, pool)
		}
		if on.Pool.DeletionTimestamp != nil {
			plan.BeingDeleted = append(plan.BeingDeleted, pool)
		}
	}
}

// sortedSet sorts the names and removes duplicates.
func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
