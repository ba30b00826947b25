// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview computes the effects of a change to NodePools on nodes, pods and RuntimeClasses.
// It is used by the kubectl plugin.
//
//	simulate.go      the final state of nodes after the controllers have reconciled them
//	nodes.go         the differences between the final states for two sets of pools
//	pods.go          the effects of the node changes on pods
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

// Node describes the effect of a change of pools on a node. Its JSON form is printed by kubectl
// tide pools plan -o json.
type Node struct {
	Name string `json:"name"`
	// Joins and Leaves list the names of the pools that the node would join and leave.
	Joins  []string `json:"joins,omitempty"`
	Leaves []string `json:"leaves,omitempty"`
	// Changes lists the changed settings: labels first, then annotations, then taints.
	Changes []Change `json:"changes,omitempty"`
	// ConflictsBegin lists the conflicts that the node has only with the changed pools.
	// ConflictsEnd lists the conflicts that it has only with the current pools.
	ConflictsBegin []Conflict `json:"conflictsBegin,omitempty"`
	ConflictsEnd   []Conflict `json:"conflictsEnd,omitempty"`
	// NeverSettles is true if, after the change, the node would never reach a final state, because
	// the pools' labels would repeatedly change which pools select the node.
	NeverSettles bool `json:"neverSettles,omitempty"`

	// before and after are the node's final states without and with the change of pools.
	before, after *corev1.Node
	// gentle lists the NoExecute taints in `after` that are added only after the affected pods have
	// been evicted within their PodDisruptionBudgets.
	gentle []corev1.Taint
}

// Possible values of [Change.Action].
const (
	ActionAdd    = "Add"
	ActionChange = "Change"
	ActionRemove = "Remove"
)

// Change describes a label, annotation or taint of a node that would change.
type Change struct {
	Action string       `json:"action"` // Add, Change or Remove
	Kind   setting.Kind `json:"kind"`   // label, annotation or taint
	Key    string       `json:"key"`    // key:effect for a taint
	From   string       `json:"from,omitempty"`
	To     string       `json:"to,omitempty"`
	// Pool is the pool that owns the label, annotation or taint after the change. It is empty if no
	// pool owns it.
	Pool string `json:"pool,omitempty"`
	// External is true if the previous value of the label, annotation or taint was not set by a
	// pool. That value is not restored when the pool is deleted.
	External bool `json:"external,omitempty"`
}

// SettingKey returns the key of the changed setting.
func (c *Change) SettingKey() setting.Key { return setting.Key{Kind: c.Kind, Name: c.Key} }

// Conflict describes a key to which Pool and the older pool Owner assign different values.
type Conflict struct {
	Pool  string       `json:"pool"`
	Owner string       `json:"owner"`
	Kind  setting.Kind `json:"kind"`
	Key   string       `json:"key"`
}

// Nodes returns the nodes that would differ, sorted by name, if the pools in `before` were replaced
// with the pools in `after`. It compares the controllers' final results, so changes in progress are
// not included. The given pools and nodes are not modified.
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

// compare returns the differences between two simulation results for the same node, and whether
// there are any.
func compare(before, after Result) (p Node, differs bool) {
	p = Node{
		Name: before.Node.Name, before: before.Node, after: after.Node, gentle: after.gentle,
		Joins: difference(after.pools, before.pools), Leaves: difference(before.pools, after.pools),
		Changes:        changes(before, after),
		ConflictsBegin: conflicts(difference(after.conflicts, before.conflicts)),
		ConflictsEnd:   conflicts(difference(before.conflicts, after.conflicts)),
		NeverSettles:   after.neverSettles && !before.neverSettles,
	}
	return p, len(p.Joins)+len(p.Leaves)+len(p.Changes)+len(p.ConflictsBegin)+len(p.ConflictsEnd) > 0 || p.NeverSettles
}

// changes returns the settings of a node that differ between two simulation results.
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
