// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview computes the effects of a change of NodePools on nodes, pods and
// RuntimeClasses, for the kubectl plugin.
//
//	simulate.go      the state of nodes once the controllers are done
//	nodes.go         the differences of that state between two sets of pools
//	pods.go          the effects on pods of the nodes that differ
//	runtimeclass.go  the effect on a pool's RuntimeClass
package preview

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Node is the effect of a change of pools on a node. Its JSON form is the output of kubectl
// tide pools plan -o json.
type Node struct {
	Name string `json:"name"`
	// Joins and Leaves are the names of pools.
	Joins  []string `json:"joins,omitempty"`
	Leaves []string `json:"leaves,omitempty"`
	// Changes are the changes of labels, annotations and taints, in this order.
	Changes []Change `json:"changes,omitempty"`
	// ConflictsBegin are the conflicts that the node has only after the change, ConflictsEnd
	// the conflicts that it has only before.
	ConflictsBegin []Conflict `json:"conflictsBegin,omitempty"`
	ConflictsEnd   []Conflict `json:"conflictsEnd,omitempty"`
	// NeverSettles is true if pools would keep adding the node to each other and removing it
	// again.
	NeverSettles bool `json:"neverSettles,omitempty"`

	// before is the node with the pools before the change, after with the pools after the
	// change.
	before, after *corev1.Node
}

// The actions of a [Change].
const (
	ActionAdd    = "Add"
	ActionChange = "Change"
	ActionRemove = "Remove"
)

// Change is a label, annotation or taint that changes.
type Change struct {
	Action string       `json:"action"` // Add, Change or Remove
	Kind   setting.Kind `json:"kind"`   // label, annotation or taint
	Key    string       `json:"key"`    // key:effect of a taint
	From   string       `json:"from,omitempty"`
	To     string       `json:"to,omitempty"`
	// Pool owns the setting after the change; empty if no pool does.
	Pool string `json:"pool,omitempty"`
	// External is true if no pool had put the old value there. The old value is not restored
	// when the pool is deleted.
	External bool `json:"external,omitempty"`
}

// SettingKey returns the key of the setting that changes.
func (c *Change) SettingKey() setting.Key { return setting.Key{Kind: c.Kind, Name: c.Key} }

// Conflict is a key that Pool asks for and that the older pool Owner owns with another value.
type Conflict struct {
	Pool  string       `json:"pool"`
	Owner string       `json:"owner"`
	Kind  setting.Kind `json:"kind"`
	Key   string       `json:"key"`
}

// Nodes returns the nodes that would differ, sorted by name, if the pools after existed instead
// of the pools before. It compares the final results of the controllers, so changes in progress
// are not included. Pools and nodes are not modified.
func Nodes(before, after []*tidekeeperv1.NodePool, nodes []corev1.Node) []Node {
	without, with := NewSimulator(before), NewSimulator(after)
	var previews []Node
	for i := range nodes {
		if p, differs := compare(without.Run(&nodes[i]), with.Run(&nodes[i])); differs {
			previews = append(previews, p)
		}
	}
	slices.SortFunc(previews, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return previews
}

// compare returns the differences between two results for the same node.
func compare(before, after Result) (p Node, differs bool) {
	p = Node{
		Name: before.Node.Name, before: before.Node, after: after.Node,
		Joins: difference(after.pools, before.pools), Leaves: difference(before.pools, after.pools),
		Changes:        changes(before, after),
		ConflictsBegin: conflicts(difference(after.conflicts, before.conflicts)),
		ConflictsEnd:   conflicts(difference(before.conflicts, after.conflicts)),
		NeverSettles:   after.neverSettles && !before.neverSettles,
	}
	return p, len(p.Joins)+len(p.Leaves)+len(p.Changes)+len(p.ConflictsBegin)+len(p.ConflictsEnd) > 0 || p.NeverSettles
}

// changes returns the settings that differ.
func changes(before, after Result) []Change {
	old, now := setting.Actual(before.Node), setting.Actual(after.Node)
	all := maps.Clone(old)
	maps.Copy(all, now)
	var list []Change
	for _, key := range slices.SortedFunc(maps.Keys(all), setting.Compare) {
		from, was := old[key]
		to, is := now[key]
		if was == is && from == to || key == setting.AnnotationKey(tidekeeperv1.OwnershipAnnotation) {
			continue
		}
		c := Change{Action: ActionChange, Kind: key.Kind, Key: key.Name, From: from, To: to, External: was && !before.ownership.Owns(key, from)}
		switch {
		case !was:
			c.Action = ActionAdd
		case !is:
			c.Action = ActionRemove
		}
		for pool, settings := range after.ownership {
			if digest, has := settings[key]; has && digest == ownership.DigestOf(key, to) {
				c.Pool = pool
			}
		}
		list = append(list, c)
	}
	order := setting.Kinds()
	slices.SortStableFunc(list, func(a, b Change) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return list
}

// difference returns the elements of a that are not in b.
func difference[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(element T) bool { return slices.Contains(b, element) })
}

func conflicts(planned []plan.Conflict) []Conflict {
	var list []Conflict
	for _, c := range planned {
		list = append(list, Conflict{Pool: c.Pool, Owner: c.Owner, Kind: c.Key.Kind, Key: c.Key.Name})
	}
	return list
}
