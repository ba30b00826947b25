// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// A NoExecute taint with the eviction WithinBudgets is added to a node in two steps. The first step
// closes the node to new pods, once the pool may evict pods from the node. It adds the closing
// taint, which has the same key and value but the effect NoSchedule, and records the time in the
// node's ownership annotation. [DecideEmptying] then selects the pods to evict.
//
// The second step is taken once the NoExecute taint would no longer delete any pod. It adds the
// NoExecute taint, and removes the closing taint and the recorded time. Any manager can continue at
// any point, because the entire state is stored on the node.

// TaintBeingPrepared is a NoExecute taint that a node gets once the node has been emptied.
type TaintBeingPrepared struct {
	Pool  string
	Taint corev1.Taint
	// Since is the time at which the pool closed the node to new pods for this taint.
	Since time.Time
}

// evictsWithinBudgets reports whether the taint of a pool's spec evicts pods within their
// PodDisruptionBudgets.
func evictsWithinBudgets(t *tidekeeperv1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoExecute && t.Eviction == tidekeeperv1.TaintEvictionWithinBudgets
}

// EvictsWithinBudgets reports whether a taint of the pool's spec evicts pods within their
// PodDisruptionBudgets.
func EvictsWithinBudgets(pool *tidekeeperv1.NodePool) bool {
	for i := range pool.Spec.Taints {
		if evictsWithinBudgets(&pool.Spec.Taints[i]) {
			return true
		}
	}
	return false
}

// isWithinBudgets reports whether a key belongs to a NoExecute taint in the pool's spec with the
// eviction WithinBudgets.
func isWithinBudgets(pool *tidekeeperv1.NodePool, key setting.Key) bool {
	for i := range pool.Spec.Taints {
		if t := &pool.Spec.Taints[i]; evictsWithinBudgets(t) && setting.TaintKey(t.Key, t.Effect) == key {
			return true
		}
	}
	return false
}

// closingTaints yields the closing taints of the pool. These have the effect NoSchedule, and keep
// new pods away from a node before it gets a NoExecute taint with the eviction WithinBudgets. If
// the spec has a NoSchedule taint with the same key, no closing taint is needed.
func closingTaints(pool *tidekeeperv1.NodePool) iter.Seq[corev1.Taint] {
	return func(yield func(corev1.Taint) bool) {
		own := sets.New[string]()
		for _, t := range pool.Spec.Taints {
			if t.Effect == corev1.TaintEffectNoSchedule {
				own.Insert(t.Key)
			}
		}
		for i := range pool.Spec.Taints {
			t := &pool.Spec.Taints[i]
			if evictsWithinBudgets(t) && !own.Has(t.Key) &&
				!yield(corev1.Taint{Key: t.Key, Value: string(t.Value), Effect: corev1.TaintEffectNoSchedule}) {
				return
			}
		}
	}
}

// WantedKeys returns the setting keys that the pool may set on nodes. These are the keys in its
// spec, and the keys of its closing taints, which keep new pods away from nodes that are being
// emptied.
func WantedKeys(pool *tidekeeperv1.NodePool) sets.Set[setting.Key] {
	keys := sets.New[setting.Key]()
	for key := range setting.Desired(pool) {
		keys.Insert(key)
	}
	for t := range closingTaints(pool) {
		keys.Insert(setting.TaintKey(t.Key, t.Effect))
	}
	return keys
}

// step is the next step in adding a NoExecute taint with the eviction WithinBudgets to a node.
type step int

const (
	// stepNone means that the node already has the NoExecute taint, or that the plan must not
	// change the pool's settings, for example because the pool does not manage the taint's key yet.
	stepNone step = iota
	// stepWait means that the node waits until the pool may evict pods from it.
	stepWait
	// stepClose means that the pool may evict pods from the node, and that the plan closes the node
	// to new pods.
	stepClose
	// stepEmpty means that the node is closed to new pods and is being emptied.
	stepEmpty
	// stepTaint means that the node has been emptied, and that the plan adds the taint.
	stepTaint
)

// stepOf returns the next step in adding a NoExecute taint with the eviction WithinBudgets. closed
// is true if, after this step, the node is closed to new pods because of the taint. since is the
// time at which the pool closed the node, or zero if closed is false.
func (p *planner) stepOf(key setting.Key, w winner) (next step, since time.Time, closed bool) {
	pool := w.Pool.Name
	if actual, exists := p.has(key); exists && actual == w.value {
		return stepNone, time.Time{}, false
	}
	mayManage := IsActive(w.Pool) && setting.Manages(w.Pool, key) &&
		(setting.Manages(w.Pool, key.NoSchedule()) || !WantedKeys(w.Pool).Has(key.NoSchedule()))
	since, closed = p.closed[pool][key.TaintKey()]
	switch {
	case !mayManage, p.frozen.Has(pool), p.leftOut.Has(pool):
		return stepNone, since, closed
	case w.Emptied && (closed || w.MayEvict):
		return stepTaint, time.Time{}, false
	case closed:
		return stepEmpty, since, true
	case w.MayEvict:
		return stepClose, w.TurnAt, true
	default:
		return stepWait, time.Time{}, false
	}
}

// close adds closing taints to `winners`, the settings to be written. A closing taint keeps new
// pods away from the node while the node is being emptied. It is not added if a pool's spec has a
// taint with the same key and effect, because that taint also keeps new pods away.
func (p *planner) close(winners map[setting.Key]winner) {
	for pool := range p.frozen {
		for key, since := range p.closed[pool] {
			p.plan.Closed = p.plan.Closed.With(pool, key, since)
		}
	}
	var tainting []setting.Key
	for key, w := range winners {
		if key.IsNoExecute() && isWithinBudgets(w.Pool, key) {
			tainting = append(tainting, key)
		}
	}
	for _, key := range tainting {
		w := winners[key]
		next, since, closed := p.stepOf(key, w)
		if !closed {
			continue
		}
		p.plan.Closed = p.plan.Closed.With(w.Pool.Name, key.TaintKey(), since)
		closing := key.NoSchedule()
		if _, taken := winners[closing]; !taken {
			winners[closing] = winner{PoolOnNode: w.PoolOnNode, value: w.value, closing: true}
		}
		if _, exists := p.has(closing); exists && next == stepEmpty {
			p.plan.Emptying = append(p.plan.Emptying, beingPrepared(key, w, since))
		}
	}
}

func beingPrepared(key setting.Key, w winner, since time.Time) TaintBeingPrepared {
	return TaintBeingPrepared{
		Pool: w.Pool.Name, Since: since,
		Taint: corev1.Taint{Key: key.TaintKey(), Value: w.value, Effect: corev1.TaintEffectNoExecute},
	}
}

// writeWithinBudgets plans the next step for a NoExecute taint with the eviction WithinBudgets that
// the node lacks. It adds the taint, or records in the plan why the taint cannot be added yet.
func (p *planner) writeWithinBudgets(key setting.Key, w winner) {
	pool := w.Pool.Name
	switch next, _, _ := p.stepOf(key, w); next {
	case stepTaint:
		p.set(key, w)
		p.plan.Emptied = append(p.plan.Emptied, beingPrepared(key, w, p.closed[pool][key.TaintKey()]))
		return
	case stepWait:
		p.plan.EvictionPending = append(p.plan.EvictionPending, pool)
	case stepClose:
		p.plan.Evicting = append(p.plan.Evicting, pool)
	default:
	}
	p.plan.Outdated = append(p.plan.Outdated, pool)
	p.pending[key] = pool
	p.keepOwnership(key)
}

// keepsForeign reports whether a closing taint is omitted because another client has put a taint
// with the same key and effect, but another value, on the node. That taint also keeps new pods
// away, except for pods that tolerate it.
func (p *planner) keepsForeign(key setting.Key, w winner) bool {
	actual, exists := p.has(key)
	return w.closing && exists && actual != w.value && !p.recorded.Owns(key, actual)
}

func compareTaints(a, b TaintBeingPrepared) int {
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Taint.Key, b.Taint.Key))
}
