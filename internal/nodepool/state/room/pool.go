// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package room maintains running sums of the resources that are free for new pods, for each node
// and each pool. [capacity.Members.Room] computes the same amounts without running sums.
//
//	node.go     the free resources of a node
//	pool.go     the sums of a pool, and its nodes that accept no new pods, by cause
//	largest.go  the nodes of a pool with the most free resources
package room

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// Pool holds running sums of the free resources on the nodes of a pool. The zero value is a pool
// without nodes and taints.
type Pool struct {
	taints       []corev1.Taint
	usable, free resources.Sums
	// lost holds the resources that new pods cannot use, summed over the nodes that accept no new
	// pods. The sums are grouped by the cause, such as a taint. causes maps each of these nodes to
	// the cause.
	lost    map[tidekeeperv1.LostCause]*lost
	causes  map[*Node]tidekeeperv1.LostCause
	largest largest
}

type lost struct {
	nodes int32
	resources.Sums
}

// SetTaints sets the taints of the pool's spec, which the pool's pods are assumed to tolerate. If
// the taints have changed, all given nodes are counted again.
func (p *Pool) SetTaints(taints []corev1.Taint, nodes iter.Seq[*Node]) {
	if slices.Equal(taints, p.taints) {
		return
	}
	p.taints = taints
	for n := range nodes {
		p.Update(n, n.Amounts)
	}
}

// Add adds a node to the pool, and the node's amounts to the pool's sums.
func (p *Pool) Add(n *Node) {
	cause := p.causeOf(n)
	p.sum(n.Amounts, cause, +1)
	p.setCause(n, cause)
	p.largest.update(n, nil, cause == "")
}

// Remove removes a node from the pool, and the node's amounts from the pool's sums.
func (p *Pool) Remove(n *Node) {
	p.sum(n.Amounts, p.causes[n], -1)
	delete(p.causes, n)
	p.largest.update(n, n.left, false)
}

// Update replaces a node's previous amounts, as returned by [Node.Recount], with its current
// amounts.
func (p *Pool) Update(n *Node, before Amounts) {
	was, now := p.causes[n], p.causeOf(n)
	if was != "" || now != "" || !slices.Equal(before.allocatable, n.allocatable) {
		p.sum(before, was, -1)
		p.sum(n.Amounts, now, +1)
	} else {
		// Only the node's pods have changed, which is the usual case. It affects only the free
		// amounts.
		for i, a := range n.left {
			if a != before.left[i] {
				p.free.SubtractN(before.left[i], 1)
				p.free.AddN(a, 1)
			}
		}
	}
	p.setCause(n, now)
	p.largest.update(n, before.left, now == "")
}

// causeOf returns the reason why no new pod of the pool can start on the node, or "" if pods can
// start.
func (p *Pool) causeOf(n *Node) tidekeeperv1.LostCause {
	return capacity.CauseOf(n.Object, p.taints, resources.ValueOf(n.left, corev1.ResourcePods) > 0)
}

func (p *Pool) setCause(n *Node, cause tidekeeperv1.LostCause) {
	if cause == "" {
		delete(p.causes, n)
		return
	}
	if p.causes == nil {
		p.causes = map[*Node]tidekeeperv1.LostCause{}
	}
	p.causes[n] = cause
}

// sum adds a node's amounts, multiplied by `sign`, to the pool's sums of usable and free resources.
// Unless `cause` is empty, it also adds them to the sums of lost resources with this cause.
func (p *Pool) sum(amounts Amounts, cause tidekeeperv1.LostCause, sign int) {
	to := &lost{} // discarded unless there is a cause, because nothing is lost without a cause
	if cause != "" {
		if p.lost == nil {
			p.lost = map[tidekeeperv1.LostCause]*lost{}
		}
		if p.lost[cause] == nil {
			p.lost[cause] = to
		}
		to = p.lost[cause]
		to.nodes += int32(sign)
	}
	for i, a := range amounts.allocatable {
		usable, free, lost := capacity.Split(cause, a.Value, a.Value-amounts.left[i].Value)
		p.usable.AddN(resources.Amount{Resource: a.Resource, Value: usable}, sign)
		p.free.AddN(resources.Amount{Resource: a.Resource, Value: free}, sign)
		to.AddN(resources.Amount{Resource: a.Resource, Value: lost}, sign)
	}
	if cause != "" && to.nodes == 0 {
		delete(p.lost, cause)
	}
}

// Report describes the free resources of a pool in the form of the pool's status.
type Report struct {
	// LostNodes is the number of nodes that do not accept new pods.
	LostNodes    int
	Usable, Free corev1.ResourceList
	Lost         []tidekeeperv1.Lost
	LargestFits  []tidekeeperv1.LargestFit
	// LargestFit maps each resource to its largest free amount on any single usable node.
	LargestFit corev1.ResourceList
}

// maxShownResources is the maximum number of resources that the status contains for each loss and
// each largest fit.
const maxShownResources = 8

// Report returns the pool's free and lost resources, limited to the named resources.
func (p *Pool) Report(names []corev1.ResourceName) Report {
	names = slices.SortedFunc(slices.Values(names), resources.CompareNames)
	shown := names[:min(len(names), maxShownResources)]
	r := Report{LostNodes: len(p.causes), Usable: p.usable.ListOf(names), Free: p.free.ListOf(names)}
	for _, cause := range capacity.Causes {
		if of := p.lost[cause]; of != nil {
			r.Lost = append(r.Lost, tidekeeperv1.Lost{Cause: cause, Nodes: of.nodes, Resources: of.ListOf(shown)})
		}
	}
	most := resources.Sums{}
	for name, h := range p.largest {
		most[name] = resources.Sum{Value: resources.ValueOf(h.top().left, name), Count: 1}
	}
	r.LargestFit = most.ListOf(slices.DeleteFunc(slices.Clone(names), resources.IsSecondary))
	for _, n := range p.largest.nodes() {
		var left resources.Sums
		left.Add(n.left)
		r.LargestFits = append(r.LargestFits, tidekeeperv1.LargestFit{Node: n.Name, Resources: left.ListOf(shown)})
	}
	return r
}
