// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// HeadroomAsk is a pool that asks for headroom.
type HeadroomAsk struct {
	Name       string
	UID        types.UID
	Generation int64
	Headroom   tidekeeperv1.Headroom
	// Members are the names of the pool's nodes, in their order.
	Members []string
}

// HeadroomAsks returns the pools that ask for headroom, and the cluster in which to look for
// it; neither if the cluster has not changed since that number of changes. It returns the
// present number.
func (c *Cluster) HeadroomAsks(since uint64) (asks []HeadroomAsk, cluster *capacity.Cluster, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roomChanges == since {
		return nil, nil, since
	}
	for name, p := range c.pools {
		if p.object.Spec.Headroom != nil && p.object.DeletionTimestamp.IsZero() && p.invalid == nil {
			asks = append(asks, HeadroomAsk{name, p.object.UID, p.object.Generation, *p.object.Spec.Headroom, sets.List(p.members)})
		}
	}
	if len(asks) == 0 {
		return nil, nil, c.roomChanges
	}
	return asks, c.capacity(), c.roomChanges
}

// capacity returns the cluster as it is, for questions that the sums do not answer.
func (c *Cluster) capacity() *capacity.Cluster {
	list := make([]*corev1.Node, 0, len(c.nodes))
	for _, n := range c.nodes {
		if n.object != nil {
			list = append(list, n.object)
		}
	}
	cluster := capacity.New(list, nil)
	examples := make(map[*profile]*corev1.Pod, len(c.profiles))
	for _, n := range c.nodes {
		// In the same order each time, so that the same cluster gives the same answer.
		for _, p := range slices.SortedFunc(maps.Keys(n.pods), func(a, b *profile) int { return bytes.Compare(a.key[:], b.key[:]) }) {
			if examples[p] == nil {
				examples[p] = p.example()
			}
			cluster.Add(n.name, examples[p], p.requests, n.pods[p])
		}
	}
	return cluster
}
