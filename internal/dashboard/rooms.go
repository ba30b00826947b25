// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// recentAge is the maximum age of the capacity model or forecast that a page of a large cluster may
// show when it is opened. The page's stream then computes new values.
const recentAge = 30 * time.Second

// rooms caches the cluster's [view.Room], the model of the free capacity, until pools, nodes or
// pods change. A Room is computed without holding the lock of the pages.
type rooms struct {
	// making is held while a Room is being computed. It guards the field keys.
	making sync.Mutex
	keys   capacity.Keys
	last   atomic.Pointer[roomModel]
}

// roomModel is the [view.Room] for the objects of a snapshot, with values computed from the Room.
// After its construction, it is guarded by the lock of the pages.
type roomModel struct {
	room   *view.Room
	losses []view.PoolLoss
	// details caches the details of pools, keyed by the pool's name.
	details map[string]*view.PoolDetail

	// version identifies the objects from which the model was computed. `at` is the time of their
	// snapshot, and objects and versions hold the snapshot's pools, nodes and pods, keyed by kind.
	version  string
	at       time.Time
	objects  map[string][]metav1.Object
	versions map[string]int64
}

// of returns the model for the objects in a snapshot. It returns nil if nodes, pods or pools could
// not be read, or if ctx is done. If recent is set and the cluster is large, it returns the last
// model if that model is younger than recentAge. It then replaces the pools, nodes and pods in the
// snapshot by those of the model, so that the page does not mix objects of different times.
func (m *rooms) of(ctx context.Context, s *snapshot, recent bool) *roomModel {
	if s.problem(capacityKinds...) != "" {
		return nil
	}
	if last := m.last.Load(); recent && last != nil && s.large() && s.now.Sub(last.at) < recentAge {
		for _, kind := range capacityKinds {
			s.objects[kind], s.versions[kind] = last.objects[kind], last.versions[kind]
		}
		s.olderThan(last.at)
		return last
	}
	m.making.Lock()
	defer m.making.Unlock()
	version := s.version(capacityKinds...)
	if last := m.last.Load(); last != nil && last.version == version {
		return last
	}
	made := &roomModel{version: version, at: s.now, objects: map[string][]metav1.Object{}, versions: map[string]int64{}, details: map[string]*view.PoolDetail{}}
	for _, kind := range capacityKinds {
		made.objects[kind], made.versions[kind] = s.objects[kind], s.versions[kind]
	}
	room, err := view.NewRoomWith(ctx, &m.keys, s.pools(), s.nodes(), s.pods())
	if err != nil {
		return nil
	}
	made.room = room
	made.losses = made.room.Losses(nil)
	m.last.Store(made)
	return made
}

// parts returns the Room, and the effects of losing nodes and zones. Both are nil if m is nil,
// which means that the free capacity is unknown.
func (m *roomModel) parts() (*view.Room, []view.PoolLoss) {
	if m == nil {
		return nil, nil
	}
	return m.room, m.losses
}

// detail returns a pool's details as in kubectl tide pools describe, without usage and events. If m
// is nil, the free capacity is unknown and the details are not cached.
func (m *roomModel) detail(s *snapshot, pool *tidekeeperv1.NodePool) (view.PoolDetail, error) {
	var known *view.PoolDetail
	if m != nil {
		known = m.details[pool.Name]
	}
	if known == nil {
		facts, err := factsOf(s, pool, m)
		if err != nil {
			return view.PoolDetail{}, err
		}
		detail, err := view.PoolDetailOf(facts, s.now)
		if err != nil {
			return view.PoolDetail{}, err
		}
		if known = &detail; m != nil {
			m.details[pool.Name] = known
		}
	}
	detail := *known
	detail.Pool = view.PoolOf(pool, s.now)
	return detail, nil
}

func factsOf(s *snapshot, pool *tidekeeperv1.NodePool, model *roomModel) (view.PoolFacts, error) {
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
	if model != nil {
		f.Cluster = model.room.Cluster
	}
	return f, nil
}
