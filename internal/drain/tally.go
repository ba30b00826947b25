// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Surveyed lists the reasons that a [Survey] evaluates, in display order.
var Surveyed = []Reason{Budget, SeveralBudgets, Terminating, Finalizer, LongGrace, NoController, LocalData, NoPlace}

// Tally counts the nodes of a pool that cannot be drained, and the pods that block the drains. Each
// node is evaluated as if no other node were drained.
type Tally struct {
	// Blocked is the number of nodes with at least one blocker, and Lasting is the number of nodes
	// with at least one lasting blocker (see [Patience]).
	Blocked, Lasting int
	// Pods maps each surveyed reason that is not ignored to the number of pods that block the drain
	// of their node for this reason.
	Pods map[Reason]int
	// Uncertain is the number of pods that no known budget blocks, but for which it is unknown
	// which other budgets select them. UncertainIn is a namespace with such pods.
	Uncertain   int
	UncertainIn string

	groups map[groupKey]*Group
	// node is the node whose blockers are currently being counted. blocked and lasting are true
	// once this node has been counted in Blocked and Lasting.
	node             string
	blocked, lasting bool
}

// groupKey identifies a group of lasting blockers that are reported together.
type groupKey struct {
	reason                      Reason
	namespace, workload, object string
}

// Group describes the lasting blockers of a workload for the same reason, on all nodes of a pool.
// Pods without a controller are grouped by namespace. Pods that no other node has room for are in a
// single group, without namespace and workload.
type Group struct {
	Reason              Reason
	Namespace, Workload string
	// Object is the object that causes the blockers, such as PodDisruptionBudget/web; empty if no
	// other object causes them.
	Object      string
	Pods, Nodes int
	// Node is the first affected node by name.
	Node string
	// Since is the earliest time at which a blocker of the group arose, or nil if it is unknown.
	Since *metav1.Time
	// last is the node that was most recently counted in Nodes.
	last string
}

// NewTally returns an empty Tally. Blockers with the given reasons are not counted.
func NewTally(ignored ...Reason) *Tally {
	t := &Tally{Pods: map[Reason]int{}, groups: map[groupKey]*Group{}}
	for _, reason := range Surveyed {
		if !slices.Contains(ignored, reason) {
			t.Pods[reason] = 0
		}
	}
	return t
}

// counts reports whether blockers with the given reason are counted.
func (t *Tally) counts(reason Reason) bool {
	_, counted := t.Pods[reason]
	return counted
}

// begin makes the given node the node whose blockers are counted next.
func (t *Tally) begin(node string) {
	t.node, t.blocked, t.lasting = node, false, false
}

// add counts `count` pods of the current node that have the same blocker.
func (t *Tally) add(b *Blocker, count int, lasting bool) {
	if !t.counts(b.Reason) {
		return
	}
	t.Pods[b.Reason] += count
	if !t.blocked {
		t.Blocked, t.blocked = t.Blocked+1, true
	}
	if !lasting {
		return
	}
	if !t.lasting {
		t.Lasting, t.lasting = t.Lasting+1, true
	}
	key := groupKey{b.Reason, b.Namespace, b.Workload, b.Object}
	g := t.groups[key]
	if g == nil {
		g = &Group{Reason: b.Reason, Namespace: b.Namespace, Workload: b.Workload, Object: b.Object, Node: t.node}
		t.groups[key] = g
	}
	g.Pods += count
	g.Node = min(g.Node, t.node)
	if g.last != t.node {
		g.last = t.node
		g.Nodes++
	}
	if b.Since != nil && (g.Since == nil || b.Since.Before(g.Since)) {
		g.Since = b.Since
	}
}

// addUncertain counts a pod for which it is unknown which budgets select it.
func (t *Tally) addUncertain(namespace string) {
	if !t.counts(Budget) && !t.counts(SeveralBudgets) {
		return
	}
	if t.Uncertain++; t.UncertainIn == "" || namespace < t.UncertainIn {
		t.UncertainIn = namespace
	}
}

// Worst returns the group of lasting blockers on the most nodes, and the number of other groups.
// Ties are broken by the order of [Reasons], the earliest start and the names. It returns nil if
// there are no lasting blockers.
func (t *Tally) Worst() (worst *Group, others int) {
	for _, g := range t.groups {
		if worst == nil || compareGroups(g, worst) < 0 {
			worst = g
		}
	}
	return worst, max(0, len(t.groups)-1)
}

// compareGroups orders groups as described for [Tally.Worst], the worst group first.
func compareGroups(a, b *Group) int {
	since := func(g *Group) int64 {
		if g.Since == nil {
			return 1<<63 - 1
		}
		return g.Since.Unix()
	}
	return cmp.Or(
		cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(orderOf(a.Reason), orderOf(b.Reason)), cmp.Compare(since(a), since(b)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Object, b.Object),
	)
}
