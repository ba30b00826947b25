// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// For those who look at pools from outside, as the kubectl plugin does.

// Level returns what pods request of a node, counted as the pool's status
// counts it, and the share of what the node has for pods, in whole percent.
func Level(node *corev1.Node, pods []*corev1.Pod) (requested corev1.ResourceList, percent map[corev1.ResourceName]int32) {
	r := newRegistry()
	var allocatable, sum sums
	allocatable.add(r.amounts(node.Status.Allocatable))
	for _, pod := range pods {
		if !terminal(pod) {
			sum.add(r.requests(pod))
		}
	}
	return r.list(sum), r.percent(sum, allocatable)
}

// NodePreview is what becomes of a node if pools are changed. Its form is what
// kubectl tide pools plan -o json prints.
type NodePreview struct {
	Name string `json:"name"`
	// Joins and Leaves are the names of pools.
	Joins  []string `json:"joins,omitempty"`
	Leaves []string `json:"leaves,omitempty"`
	// Changes of labels, annotations and taints, in this order.
	Changes []SlotPreview `json:"changes,omitempty"`
	// ConflictsBegin are keys that a pool asks for in vain from then on,
	// ConflictsEnd those that it no longer asks for in vain.
	ConflictsBegin []ConflictPreview `json:"conflictsBegin,omitempty"`
	ConflictsEnd   []ConflictPreview `json:"conflictsEnd,omitempty"`
	// Restless: pools move the node in and out of each other, without end.
	Restless bool `json:"restless,omitempty"`

	// The node at the end of both futures.
	before, after *corev1.Node
}

// What a SlotPreview does.
const (
	ActionAdd    = "Add"
	ActionChange = "Change"
	ActionRemove = "Remove"
)

// SlotPreview is a label, annotation or taint that changes.
type SlotPreview struct {
	Action string `json:"action"` // Add, Change or Remove
	Kind   string `json:"kind"`   // label, annotation or taint
	Key    string `json:"key"`    // of a taint: key:effect
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	// Pool has the key from then on; empty if none has.
	Pool string `json:"pool,omitempty"`
	// Foreign: the value that makes room is from no pool, and does not come
	// back when the pool goes.
	Foreign bool `json:"foreign,omitempty"`
}

// ConflictPreview is a key that Pool asks for and Owner, which is older, has
// with another value.
type ConflictPreview struct {
	Pool  string `json:"pool"`
	Owner string `json:"owner"`
	Kind  string `json:"kind"`
	Key   string `json:"key"`
}

// PreviewNodes returns what becomes different, by node and in the order of their
// names, if there are the pools after instead of the pools before. What is
// compared are the ends that both come to, so what is under way already is not
// part of it. Neither pools nor nodes are changed.
func PreviewNodes(before, after []*tidekeeperv1.NodePool, nodes []corev1.Node) []NodePreview {
	without, with := futureOf(before), futureOf(after)
	var previews []NodePreview
	for i := range nodes {
		if p, differs := compare(without.of(&nodes[i]), with.of(&nodes[i])); differs {
			previews = append(previews, p)
		}
	}
	slices.SortFunc(previews, func(a, b NodePreview) int { return cmp.Compare(a.Name, b.Name) })
	return previews
}

// compare returns how two ends of a node differ.
func compare(before, after rest) (p NodePreview, differs bool) {
	p = NodePreview{
		Name: before.node.Name, before: before.node, after: after.node,
		Joins: minus(after.pools, before.pools), Leaves: minus(before.pools, after.pools),
		ConflictsBegin: conflictPreviews(minus(after.conflicts, before.conflicts)),
		ConflictsEnd:   conflictPreviews(minus(before.conflicts, after.conflicts)),
		Restless:       after.restless && !before.restless,
	}
	old, now := slotsOf(before.node), slotsOf(after.node)
	all := maps.Clone(old)
	maps.Copy(all, now)
	for _, s := range slices.SortedFunc(maps.Keys(all), compareSlots) {
		from, was := old[s]
		to, is := now[s]
		if was == is && from == to || s == (slot{annotation, tidekeeperv1.RecordAnnotation}) {
			continue
		}
		c := SlotPreview{Action: ActionChange, Kind: string(s.kind), Key: s.key, From: from, To: to, Foreign: was && !before.record.holds(s, from)}
		switch {
		case !was:
			c.Action = ActionAdd
		case !is:
			c.Action = ActionRemove
		}
		for pool, holding := range after.record {
			if value, has := holding[s]; has && value == to {
				c.Pool = pool
			}
		}
		p.Changes = append(p.Changes, c)
	}
	// Annotations come before labels by name; people look for labels first.
	slices.SortStableFunc(p.Changes, func(a, b SlotPreview) int { return rank(a.Kind) - rank(b.Kind) })
	return p, len(p.Joins)+len(p.Leaves)+len(p.Changes)+len(p.ConflictsBegin)+len(p.ConflictsEnd) > 0 || p.Restless
}

func rank(k string) int { return slices.Index([]kind{label, annotation, taint}, kind(k)) }

// minus returns what is in a and not in b.
func minus[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(one T) bool { return slices.Contains(b, one) })
}

func conflictPreviews(conflicts []conflict) []ConflictPreview {
	var previews []ConflictPreview
	for _, c := range conflicts {
		previews = append(previews, ConflictPreview{Pool: c.pool, Owner: c.owner, Kind: string(c.slot.kind), Key: c.slot.key})
	}
	return previews
}

// RuntimeClassPreview is what becomes of a pool's RuntimeClass.
type RuntimeClassPreview struct {
	Name string `json:"name"`
	// Action is Create, Update (of its scheduling), Replace (by one with
	// another handler), Delete, or Conflict: it belongs to somebody else.
	Action string `json:"action"`
	From   string `json:"from,omitempty"` // handler
	To     string `json:"to,omitempty"`   // handler
}

// ActionConflict is what a RuntimeClassPreview says of one that is not the pool's.
const ActionConflict = "Conflict"

var runtimeClassActions = map[runtimeClassAction]string{
	runtimeClassCreate: "Create", runtimeClassUpdate: "Update", runtimeClassReplace: "Replace",
	runtimeClassDelete: "Delete", runtimeClassForeign: ActionConflict,
}

// RuntimeClassName returns the name of a pool's RuntimeClass.
func RuntimeClassName(pool string) string { return runtimeClassName(pool) }

// PreviewRuntimeClass returns what becomes of the RuntimeClass of a pool's name,
// nil if there is none, when the pool before (nil: there was none) becomes the
// pool after; nil if nothing. As for the nodes, what is under way already is not
// part of it.
func PreviewRuntimeClass(before, after *tidekeeperv1.NodePool, existing *nodev1.RuntimeClass) *RuntimeClassPreview {
	foreign := false
	if before != nil {
		switch decideRuntimeClass(before, existing) {
		case runtimeClassForeign:
			foreign = true
		case runtimeClassCreate, runtimeClassUpdate, runtimeClassReplace, runtimeClassDelete:
			existing = desiredRuntimeClass(before)
		}
	}
	p := &RuntimeClassPreview{Name: runtimeClassName(after.Name), To: after.Spec.Handler}
	if existing != nil {
		p.From = existing.Handler
	}
	if !after.DeletionTimestamp.IsZero() {
		// The garbage collector has it, if it is the pool's.
		after = after.DeepCopy()
		after.Spec.Handler, p.To = "", ""
	}
	action := decideRuntimeClass(after, existing)
	if action == runtimeClassRight || action == runtimeClassForeign && foreign {
		return nil
	}
	p.Action = runtimeClassActions[action]
	return p
}
