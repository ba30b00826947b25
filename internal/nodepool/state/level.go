// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
)

// level is what new pods can use of a pool's nodes, as [capacity.Cluster.Level] has it, in
// running sums.
type level struct {
	usable, free resources.Sums
	// lost is by cause, with the nodes that each is true of. causes are those of the nodes
	// that have one.
	lost   map[tidekeeperv1.LostCause]*lost
	causes map[*nodeState]tidekeeperv1.LostCause
	slots  slots
}

type lost struct {
	nodes int32
	resources.Sums
}

// room is what a node has, as it is counted in the levels of its pools. The slices never
// change.
type room struct{ allocatable, left []resources.Amount }

// roomOf returns the room of a node. Of what is left, everything that is requested is
// subtracted, down to 0.
func roomOf(n *nodeState) room {
	r := room{n.allocatable, make([]resources.Amount, len(n.allocatable))}
	for i, a := range n.allocatable {
		r.left[i] = resources.Amount{Resource: a.Resource, Value: max(0, a.Value-n.requested[a.Resource].Value)}
	}
	return r
}

// recountRoom brings the room of a node up to date, also in the levels of its pools.
func (c *Cluster) recountRoom(n *nodeState) {
	c.roomChanges++
	before := n.room
	n.room = roomOf(n)
	for _, p := range n.pools {
		p.recount(n, before, p.level.causes[n])
	}
	c.utilizationChanged(n)
}

// recount counts a member's room instead of what was counted before, for that cause.
func (p *poolState) recount(n *nodeState, before room, cause tidekeeperv1.LostCause) {
	now := p.causeOf(n)
	if cause != "" || now != "" || !slices.Equal(before.allocatable, n.room.allocatable) {
		p.level.add(before, cause, -1)
		p.level.add(n.room, now, +1)
	} else {
		// This is nearly always so: a pod has come or gone.
		for i, a := range n.room.left {
			if a != before.left[i] {
				p.level.free.SubtractN(before.left[i], 1)
				p.level.free.AddN(a, 1)
			}
		}
	}
	p.level.setCause(n, now)
	p.level.slots.update(n, before.left, now == "")
}

// count counts a new member.
func (p *poolState) count(n *nodeState) {
	cause := p.causeOf(n)
	p.level.add(n.room, cause, +1)
	p.level.setCause(n, cause)
	p.level.slots.update(n, nil, cause == "")
}

// uncount ceases to count a member.
func (p *poolState) uncount(n *nodeState) {
	p.level.add(n.room, p.level.causes[n], -1)
	delete(p.level.causes, n)
	p.level.slots.update(n, n.room.left, false)
}

// causeOf returns why no new pod of the pool can start on the node, "" if one can.
func (p *poolState) causeOf(n *nodeState) tidekeeperv1.LostCause {
	return capacity.CauseOf(n.object, p.taints, resources.ValueOf(n.room.left, corev1.ResourcePods) > 0)
}

func (l *level) setCause(n *nodeState, cause tidekeeperv1.LostCause) {
	if cause == "" {
		delete(l.causes, n)
		return
	}
	if l.causes == nil {
		l.causes = map[*nodeState]tidekeeperv1.LostCause{}
	}
	l.causes[n] = cause
}

// add adds the room of a node to the sums, once or minus once.
func (l *level) add(r room, cause tidekeeperv1.LostCause, sign int) {
	of := &lost{} // Nothing is lost without a cause.
	if cause != "" {
		if l.lost == nil {
			l.lost = map[tidekeeperv1.LostCause]*lost{}
		}
		if l.lost[cause] == nil {
			l.lost[cause] = of
		}
		of = l.lost[cause]
		of.nodes += int32(sign)
	}
	for i, a := range r.allocatable {
		usable, free, lost := capacity.Split(cause, a.Value, a.Value-r.left[i].Value)
		l.usable.AddN(resources.Amount{Resource: a.Resource, Value: usable}, sign)
		l.free.AddN(resources.Amount{Resource: a.Resource, Value: free}, sign)
		of.AddN(resources.Amount{Resource: a.Resource, Value: lost}, sign)
	}
	if cause != "" && of.nodes == 0 {
		delete(l.lost, cause)
	}
}

// maxShownResources is how many resources of a loss or a slot are in a status.
const maxShownResources = 8

// report sets what a snapshot says of the level, of these resources.
func (l *level) report(v *PoolSnapshot, allocatable resources.Sums, names []corev1.ResourceName) {
	names = slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool { return allocatable[name].Value == 0 })
	slices.SortFunc(names, resources.CompareNames)
	v.UsableNodes = v.Nodes - len(l.causes)
	v.Usable, v.Free = l.usable.ListOf(names), l.free.ListOf(names)
	shown := names[:min(len(names), maxShownResources)]
	for _, cause := range capacity.Causes {
		if of := l.lost[cause]; of != nil {
			v.Lost = append(v.Lost, tidekeeperv1.Lost{Cause: cause, Nodes: of.nodes, Resources: of.ListOf(shown)})
		}
	}
	most := resources.Sums{}
	for name, h := range l.slots {
		most[name] = resources.Sum{Value: resources.ValueOf(h.top().room.left, name), Count: 1}
	}
	v.LargestSlot = most.ListOf(slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool { return resources.IsSecondary(name) }))
	for _, n := range l.slots.nodes() {
		var left resources.Sums
		left.Add(n.room.left)
		v.Slots = append(v.Slots, tidekeeperv1.Slot{Node: n.name, Resources: left.ListOf(shown)})
	}
}
