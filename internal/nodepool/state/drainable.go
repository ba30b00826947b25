// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
)

// DrainableAsk is the input for evaluating whether the nodes of a pool can be drained.
type DrainableAsk struct {
	Name       string
	UID        types.UID
	Generation int64
	Ignore     []tidekeeperv1.DrainBlocker
	// Members lists the sorted names of the pool's member nodes.
	Members []string
}

// DrainableAsks returns the pools whose specs enable the evaluation of whether their nodes can be
// drained.
func DrainableAsks(c *Cluster) (asks []DrainableAsk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, p := range c.graph.pools {
		if spec := p.object.Spec.Drainable; spec != nil && p.object.DeletionTimestamp.IsZero() && p.invalid == nil {
			asks = append(asks, DrainableAsk{name, p.object.UID, p.object.Generation, spec.Ignore, sets.List(p.members)})
		}
	}
	return asks
}

// Room returns the nodes and pods of the cluster, for simulations of the loss of nodes. changes is
// the current value of the model's change counter. If this still equals `since`, the returned
// cluster is nil.
func Room(c *Cluster, since uint64) (cluster *capacity.Cluster, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.graph.roomChanges == since {
		return nil, since
	}
	return capacityOf(c.graph.nodes, c.graph.loads), c.graph.roomChanges
}
