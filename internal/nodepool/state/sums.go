// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/state/load"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state/room"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// sums holds running resource sums over the members of a pool.
type sums struct {
	ready                            int
	capacity, allocatable, requested resources.Sums
	room                             room.Pool
}

// figures holds the resource amounts of a node that are included in the sums of its pools.
type figures struct {
	ready                 bool
	capacity, allocatable []resources.Amount
	load                  *load.Load
	room                  room.Node
}

// add adds a node's amounts to the sums of a pool.
func (s *sums) add(n *figures) {
	if n.ready {
		s.ready++
	}
	s.capacity.Add(n.capacity)
	s.allocatable.Add(n.allocatable)
	n.load.AddTo(&s.requested)
	s.room.Add(&n.room)
}

// remove subtracts a node's amounts from the sums of a pool.
func (s *sums) remove(n *figures) {
	if n.ready {
		s.ready--
	}
	s.capacity.Subtract(n.capacity)
	s.allocatable.Subtract(n.allocatable)
	n.load.TakeFrom(&s.requested)
	s.room.Remove(&n.room)
}

// setReady updates the number of ready members after a member's readiness has changed.
func (s *sums) setReady(ready bool) {
	if ready {
		s.ready++
	} else {
		s.ready--
	}
}

// offer updates the sums after the resources offered by a member node have changed.
func (s *sums) offer(n *figures, capacity, allocatable []resources.Amount) {
	s.capacity.Subtract(n.capacity)
	s.capacity.Add(capacity)
	s.allocatable.Subtract(n.allocatable)
	s.allocatable.Add(allocatable)
}

// report fills in the snapshot's fields that derive from the sums.
func (s *sums) report(v *PoolSnapshot) {
	names := resources.ReportedNames(s.capacity, s.allocatable)
	requested, allocatable := s.requested.Only(names), s.allocatable.Only(names)
	v.Ready = s.ready
	v.Capacity, v.Allocatable, v.Requested = s.capacity.Only(names).List(), allocatable.List(), requested.ListOf(names)
	v.Percent = resources.Percent(requested, allocatable)
	var usable []corev1.ResourceName
	for _, name := range names {
		if s.allocatable[name].Value != 0 {
			usable = append(usable, name)
		}
	}
	v.Report = s.room.Report(usable)
}
