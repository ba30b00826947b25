// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// rooms caches the Room of the cluster, which evaluates its capacity, until pools, nodes or pods
// change.
type rooms struct {
	version string
	room    *view.Room
	keys    capacity.Keys
	losses  []view.PoolLoss
	details map[string]*view.PoolDetail
}

// in returns the Room for the objects in a snapshot. It returns nil if nodes, pods or pools could
// not be read.
func (m *rooms) in(s *snapshot) *view.Room {
	if s.problem(capacityKinds...) != "" {
		return nil
	}
	if version := s.version(capacityKinds...); version != m.version || m.room == nil {
		m.room, _ = view.NewRoomWith(&m.keys, s.pools(), s.nodes(), s.pods())
		m.version, m.losses, m.details = version, nil, map[string]*view.PoolDetail{}
	}
	return m.room
}

// lossesIn returns the effects of losing nodes and zones.
func (m *rooms) lossesIn(s *snapshot) []view.PoolLoss {
	room := m.in(s)
	if room != nil && m.losses == nil {
		m.losses = room.Losses(nil)
	}
	return m.losses
}

// detail returns a pool's details as in kubectl tide pools describe, without usage and events.
func (m *rooms) detail(s *snapshot, pool *tidekeeperv1.NodePool) (view.PoolDetail, error) {
	room := m.in(s)
	known := m.details[pool.Name]
	if room == nil || known == nil {
		facts, err := factsOf(s, pool, room)
		if err != nil {
			return view.PoolDetail{}, err
		}
		detail, err := view.PoolDetailOf(facts, s.now)
		if err != nil {
			return view.PoolDetail{}, err
		}
		known = &detail
		if room != nil {
			m.details[pool.Name] = known
		}
	}
	detail := *known
	detail.Pool = view.PoolOf(pool, s.now)
	return detail, nil
}

func factsOf(s *snapshot, pool *tidekeeperv1.NodePool, room *view.Room) (view.PoolFacts, error) {
	selector, err := plan.Selector(pool)
	if err != nil {
		return view.PoolFacts{}, err
	}
	f := view.PoolFacts{Pool: pool}
	for _, node := range s.nodes() {
		if selector.Matches(labels.Set(node.Labels)) {
			f.Members = append(f.Members, *node)
		}
	}
	if room != nil {
		f.Cluster = room.Cluster
	}
	return f, nil
}
