// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// claim is one pool that has to do with a node, and what it may do there.
type claim struct {
	pool *tidekeeperv1.NodePool
	// member: the pool selects the node and is not being deleted.
	member bool
	// mayEvict: a NoExecute taint of the pool may be put on this node now.
	mayEvict bool
}

// nodePlan is what has to be done to one node, and what there is to say of it.
type nodePlan struct {
	// set and remove are the labels, annotations and taints to write.
	set    map[slot]string
	remove map[slot]bool
	// record is the node's record once the plan is carried out.
	record record
	// recordChanged tells whether that differs from what is on the node.
	recordChanged bool

	// changes says, per pool, what the plan does, for events.
	changes []change
	// conflicts are keys that a member pool asks for but an older pool has.
	conflicts []conflict
	// unshaped are the member pools that the node does not look like yet.
	unshaped []string
	// heldBack are the member pools with a NoExecute taint that waits its turn,
	// evicts those with one that is put on the node now.
	heldBack, evicts []string
}

// changeKind says what a plan does to a slot, in the words of an event.
type changeKind string

const (
	put      changeKind = "put"      // there was nothing, or what another pool had put there
	replaced changeKind = "replaced" // there was another value, from no pool
	updated  changeKind = "updated"  // the pool itself asks for another value than before
	putBack  changeKind = "put back" // somebody changed or removed what the pool had put there
	removed  changeKind = "removed"  // the pool no longer asks for it
)

type change struct {
	pool string
	slot slot
	kind changeKind
}

func (c change) String() string {
	return fmt.Sprintf("pool %s: %s %s", c.pool, c.kind, c.slot)
}

// conflict is a slot on a node that pool asks for and owner, which is older,
// has with another value.
type conflict struct {
	pool, owner string
	node        string
	slot        slot
}

// empty tells whether the node is right as it is.
func (p *nodePlan) empty() bool {
	return len(p.set) == 0 && len(p.remove) == 0 && !p.recordChanged
}

// outlook is what is left of a plan to be remembered: there is one for each node.
type outlook struct {
	// due: something has to be written.
	due bool
	// The others are as in the plan.
	conflicts                  []conflict
	unshaped, heldBack, evicts []string
}

func (p *nodePlan) outlook() outlook {
	return outlook{due: !p.empty(), conflicts: p.conflicts, unshaped: p.unshaped, heldBack: p.heldBack, evicts: p.evicts}
}

// planNode decides what to write to a node. The claims are all pools that
// select the node and all existing pools that its record names, in any order.
//
// The rules, in the order in which they bite:
//   - Of two member pools that ask for one slot, the older has it.
//   - Nothing is put on a node unless the pool holds its finalizer and its
//     status names the key as managed, so that it is taken off again whatever
//     crashes. Until then the key waits, for this pool and for younger ones: a
//     younger pool that is quicker must not have it for a moment.
//   - A value that the node has already is nobody's doing: it is not recorded,
//     and stays when the pool goes. Any other value is replaced.
//   - What a pool recorded and no pool asks for is taken off, if the pool
//     vouches for the key and the value is still the recorded one: a forged
//     record takes nothing off, and what a person wrote over it stays.
//   - What is recorded for a pool that does not exist stays, record and all:
//     nobody vouches for it.
func planNode(node *corev1.Node, claims []claim) nodePlan {
	present := slotsOf(node)
	old, err := parseRecord(node.Annotations[tidekeeperv1.RecordAnnotation])
	if err != nil {
		old = adopt(claims, present)
	}

	plan := nodePlan{set: map[slot]string{}, remove: map[slot]bool{}, record: record{}}
	members := slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return !c.member })
	slices.SortFunc(members, func(a, b claim) int { return BySeniority(a.pool, b.pool) })

	// What the node should have, and from whom.
	type wish struct {
		value string
		claim claim
	}
	wishes := map[slot]wish{}
	for _, c := range members {
		for s, value := range wants(c.pool) {
			if first, taken := wishes[s]; !taken {
				wishes[s] = wish{value, c}
			} else if first.value != value {
				plan.conflicts = append(plan.conflicts,
					conflict{pool: c.pool.Name, owner: first.claim.pool.Name, node: node.Name, slot: s})
			}
		}
	}

	for s, wish := range wishes {
		pool := wish.claim.pool.Name
		recorded, ours := old[pool][s]
		value, exists := present[s]
		switch {
		case exists && value == wish.value:
			// What a pool has put there passes to the pool that asks for it now,
			// but not before that one vouches for it: nobody else might.
			switch {
			case !old.holds(s, value):
			case inForce(wish.claim.pool) && vouches(wish.claim.pool, s):
				plan.record.put(pool, s, value)
			default:
				keep(plan.record, old, s)
			}
		case !inForce(wish.claim.pool) || !vouches(wish.claim.pool, s):
			plan.unshaped = append(plan.unshaped, pool)
			keep(plan.record, old, s)
		case s.noExecute() && !wish.claim.mayEvict:
			plan.heldBack = append(plan.heldBack, pool)
			keep(plan.record, old, s)
		default:
			plan.set[s] = wish.value
			plan.record.put(pool, s, wish.value)
			plan.changes = append(plan.changes, change{pool, s, changeOf(wish.value, recorded, ours, exists && !old.holds(s, value))})
			if s.noExecute() {
				plan.evicts = append(plan.evicts, pool)
			}
		}
	}

	for pool, holding := range old {
		i := slices.IndexFunc(claims, func(c claim) bool { return c.pool.Name == pool })
		for s, recorded := range holding {
			if _, wished := wishes[s]; wished {
				continue
			}
			if i < 0 || !vouches(claims[i].pool, s) {
				// A pool that is being deleted lets go of what it never had.
				if i < 0 || claims[i].pool.DeletionTimestamp == nil {
					plan.record.put(pool, s, recorded)
				}
				continue
			}
			if present[s] == recorded {
				if _, exists := present[s]; exists {
					plan.remove[s] = true
					plan.changes = append(plan.changes, change{pool, s, removed})
				}
			}
		}
	}

	for _, c := range plan.changes {
		plan.unshaped = append(plan.unshaped, c.pool)
	}
	plan.unshaped = append(plan.unshaped, plan.heldBack...)
	plan.unshaped = distinct(slices.DeleteFunc(plan.unshaped, func(pool string) bool {
		return !slices.ContainsFunc(members, func(c claim) bool { return c.pool.Name == pool })
	}))
	plan.heldBack = distinct(plan.heldBack)
	plan.evicts = distinct(plan.evicts)
	slices.SortFunc(plan.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), compareSlots(a.slot, b.slot))
	})
	slices.SortFunc(plan.conflicts, func(a, b conflict) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), compareSlots(a.slot, b.slot))
	})
	plan.recordChanged = plan.record.String() != node.Annotations[tidekeeperv1.RecordAnnotation]
	return plan
}

// adopt makes up the record of a node whose own is unreadable: what the pools
// ask for and the node has is taken to be theirs, as they were here before, or
// there would be no record.
func adopt(claims []claim, present map[slot]string) record {
	r := record{}
	for _, c := range claims {
		for s, value := range wants(c.pool) {
			if on, exists := present[s]; exists && on == value {
				r.put(c.pool.Name, s, value)
			}
		}
	}
	return r
}

// keep carries over what is recorded of a slot that cannot be written yet.
func keep(to, from record, s slot) {
	for pool, holding := range from {
		if value, ok := holding[s]; ok {
			to.put(pool, s, value)
		}
	}
}

// changeOf names the change of a slot to the value want, where the pool had
// recorded a value there or not, and the node has one that no pool put there
// or not.
func changeOf(want, recorded string, ours, foreign bool) changeKind {
	switch {
	case ours && recorded == want:
		return putBack
	case ours:
		return updated
	case foreign:
		return replaced
	default:
		return put
	}
}

// wants yields every slot that the pool asks for, with its value.
func wants(pool *tidekeeperv1.NodePool) iter.Seq2[slot, string] {
	return func(yield func(slot, string) bool) {
		for k, v := range pool.Spec.Labels {
			if !yield(slot{label, k}, string(v)) {
				return
			}
		}
		for k, v := range pool.Spec.Annotations {
			if !yield(slot{annotation, k}, string(v)) {
				return
			}
		}
		for _, t := range pool.Spec.Taints {
			if !yield(slot{taint, taintKey(t.Key, t.Effect)}, string(t.Value)) {
				return
			}
		}
	}
}

// inForce tells whether the pool may put things on nodes: it holds the
// finalizer that sees to it that they are taken off again.
func inForce(pool *tidekeeperv1.NodePool) bool {
	return pool.DeletionTimestamp.IsZero() && slices.Contains(pool.Finalizers, tidekeeperv1.NodePoolFinalizer)
}

// vouches tells whether the pool's status names the slot as managed.
func vouches(pool *tidekeeperv1.NodePool, s slot) bool {
	managed := &pool.Status.Managed
	switch s.kind {
	case label:
		return slices.Contains(managed.Labels, s.key)
	case annotation:
		return slices.Contains(managed.Annotations, s.key)
	default:
		return slices.Contains(managed.Taints, s.key)
	}
}

// slotsOf returns everything on the node that a pool could ask for.
func slotsOf(node *corev1.Node) map[slot]string {
	slots := make(map[slot]string, len(node.Labels)+len(node.Annotations)+len(node.Spec.Taints))
	for k, v := range node.Labels {
		slots[slot{label, k}] = v
	}
	for k, v := range node.Annotations {
		slots[slot{annotation, k}] = v
	}
	for _, t := range node.Spec.Taints {
		slots[slot{taint, taintKey(t.Key, t.Effect)}] = t.Value
	}
	return slots
}

// patch returns the JSON merge patch that carries the plan out, valid only for
// the node as it was planned for (its resourceVersion). Taints are one list to
// the API server, so if one changes all are written; those of others keep
// their place. A taint that evicts gets now as the time it was added.
func (p *nodePlan) patch(node *corev1.Node, now time.Time) []byte {
	labels, annotations := map[string]*string{}, map[string]*string{}
	taints := slices.Clone(node.Spec.Taints)
	taintsChanged := false

	for s, value := range p.set {
		switch s.kind {
		case label:
			labels[s.key] = &value
		case annotation:
			annotations[s.key] = &value
		default:
			taintsChanged = true
		}
	}
	for s := range p.remove {
		switch s.kind {
		case label:
			labels[s.key] = nil
		case annotation:
			annotations[s.key] = nil
		default:
			taintsChanged = true
		}
	}
	if p.recordChanged {
		annotations[tidekeeperv1.RecordAnnotation] = nil
		if text := p.record.String(); text != "" {
			annotations[tidekeeperv1.RecordAnnotation] = &text
		}
	}

	metadata := map[string]any{"resourceVersion": node.ResourceVersion}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch := map[string]any{"metadata": metadata}
	if taintsChanged {
		patch["spec"] = map[string]any{"taints": p.taints(taints, now)}
	}
	body, err := json.Marshal(patch)
	if err != nil {
		panic("strings and taints are always JSON: " + err.Error())
	}
	return body
}

// taints returns the node's taints with the plan's changes.
func (p *nodePlan) taints(taints []corev1.Taint, now time.Time) []corev1.Taint {
	taints = slices.DeleteFunc(taints, func(t corev1.Taint) bool {
		return p.remove[slot{taint, taintKey(t.Key, t.Effect)}]
	})
	added := []slot{}
	for s, value := range p.set {
		if s.kind != taint {
			continue
		}
		i := slices.IndexFunc(taints, func(t corev1.Taint) bool { return taintKey(t.Key, t.Effect) == s.key })
		if i < 0 {
			added = append(added, s)
			continue
		}
		taints[i].Value = value
		stamp(&taints[i], now)
	}
	slices.SortFunc(added, compareSlots)
	for _, s := range added {
		colon := strings.LastIndex(s.key, ":")
		t := corev1.Taint{Key: s.key[:colon], Value: p.set[s], Effect: corev1.TaintEffect(s.key[colon+1:])}
		stamp(&t, now)
		taints = append(taints, t)
	}
	return taints
}

// stamp notes when a taint that evicts was added; the share of nodes that may
// be evicted at once is counted from it.
func stamp(t *corev1.Taint, now time.Time) {
	if t.Effect == corev1.TaintEffectNoExecute {
		t.TimeAdded = &metav1.Time{Time: now}
	}
}

func compareSlots(a, b slot) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
