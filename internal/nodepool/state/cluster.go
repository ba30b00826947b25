// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state is the manager's model of all pools, nodes and pods: the members of each
// pool, the plan of each node, and running sums. The informers feed it event by event, and
// for each event it returns the nodes and pools that must be reconciled.
//
//	cluster.go     the model under its lock, as informers feed it
//	snapshot.go    a snapshot of a pool, and the cluster for its headroom
//	writes.go      the writes of nodes
//	evictions.go   the nodes that may get a NoExecute taint
//	graph.go       pools and nodes, and the edges between them
//	pool.go, sums.go, turns.go
//	               a pool: its members, their sums, and their turns for a NoExecute taint
//	node.go        a node, and the differences between its versions
//	owners.go      the ownership records of all nodes, by pool
//	formerkeys.go  keys that pools managed in the past
//	journal.go, aggregator.go
//	               the changes to pools, until they are reported as events
//	dirty.go       the nodes and pools that must be reconciled
//	load/          the requests of the pods on each node
//	room/          the room for new pods on each node and in each pool
package state

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
)

// Cluster is a model of all pools, nodes and pods, which the informers feed and the controllers
// query. It knows at any time which pools concern which node, which nodes are out of sync, and
// the sums of resources per node and pool. The sums are updated event by event, so that no
// query iterates over all objects.
//
// Methods that change the model return the nodes and pools that must be reconciled as a result.
// All methods may be called from several goroutines.
type Cluster struct {
	// Journal has the events of the pools.
	Journal *Journal
	guarded
}

// guarded is the graph under its lock.
type guarded struct {
	mu    sync.Mutex
	graph graph
}

// change changes the graph, and returns the nodes and pools that must be reconciled.
func (u *guarded) change(do func(g *graph)) Dirty {
	u.mu.Lock()
	defer u.mu.Unlock()
	do(&u.graph)
	dirty := u.graph.dirty
	u.graph.dirty = newDirty()
	return dirty
}

// NewCluster returns an empty model.
func NewCluster() *Cluster {
	c := &Cluster{guarded: guarded{graph: newGraph()}}
	c.Journal = c.graph.journal
	return c
}

// SetPool adds or updates a pool.
func (c *Cluster) SetPool(object *tidekeeperv1.NodePool) Dirty {
	return c.change(func(g *graph) {
		var queued sets.Set[string]
		if p, known := g.pools[object.Name]; known && p.ahead.version != "" && p.object.UID == object.UID {
			if isOlder(object.ResourceVersion, p.ahead.version) {
				return
			}
			if p.ahead.version == object.ResourceVersion {
				queued = p.ahead.queued
			}
			p.ahead.version, p.ahead.queued = "", nil
		}
		g.putPool(object)
		g.dirty.Nodes = g.dirty.Nodes.Difference(queued)
	})
}

// PoolWritten updates a pool from the API server's answer to a write of its finalizer or, at
// the time statusWritten, of its status, so that nodes that wait for the write need not wait
// for the informer, too. These nodes are queued without a new plan, because planning them all
// takes longer than the first few writes; the node controller plans each before its write, and
// the informer's event plans them all. Until the informer shows the answer, its older versions
// are ignored.
func (c *Cluster) PoolWritten(answer *tidekeeperv1.NodePool, statusWritten time.Time) Dirty {
	return c.change(func(g *graph) {
		p, known := g.pools[answer.Name]
		if known && !statusWritten.IsZero() {
			p.statusWritten = statusWritten
		}
		if !known || p.object.UID != answer.UID || !isOlder(p.object.ResourceVersion, answer.ResourceVersion) {
			return
		}
		old := p.object
		p.object, p.ahead.version = answer.DeepCopy(), answer.ResourceVersion
		g.addFormerKeys(old, answer)
		if plansDiffer(old, answer) {
			p.ahead.unplanned = true
		}
		if plan.IsActive(answer) && !equality.Semantic.DeepEqual(old.Status.Managed, answer.Status.Managed) {
			p.ahead.queued = p.plans.outdated.Clone()
			g.dirty.Nodes = g.dirty.Nodes.Union(p.ahead.queued)
		}
	})
}

// isOlder reports whether resourceVersion a is older than b, of the same object.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// DeletePool removes a pool.
func (c *Cluster) DeletePool(name string) Dirty {
	return c.change(func(g *graph) { g.dropPool(name) })
}

// SetNode adds or updates a node.
func (c *Cluster) SetNode(object *corev1.Node) Dirty {
	return c.change(func(g *graph) { g.putNode(object) })
}

// DeleteNode removes a node.
func (c *Cluster) DeleteNode(name string) Dirty {
	return c.change(func(g *graph) { g.dropNode(name) })
}

// SetPod adds or updates a pod; see [load.Nodes.SetPod] for pods that share their containers.
func (c *Cluster) SetPod(pod *corev1.Pod) Dirty {
	return c.change(func(g *graph) {
		came, left := g.loads.SetPod(pod)
		g.loadsChanged(came, left)
	})
}

// DeletePod removes a pod.
func (c *Cluster) DeletePod(uid types.UID) Dirty {
	return c.change(func(g *graph) { g.loadsChanged(g.loads.DeletePod(uid)) })
}

// AllKeys returns all nodes that need a write, and all pools, for a controller that starts.
func (c *Cluster) AllKeys() Dirty {
	return c.change(func(g *graph) {
		for name, n := range g.nodes {
			if n.summary.NeedsWrite {
				g.dirty.Nodes.Insert(name)
			}
		}
		for name := range g.pools {
			g.dirty.Edited.Insert(name)
		}
	})
}

// StartRecording starts the recording of joins and leaves in the journal. Joins and leaves from
// the time when no manager was recording are recorded now, as far as the ownership records show
// them.
func (c *Cluster) StartRecording() {
	if !c.Journal.startMoves() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, p := range c.graph.pools {
		if !p.object.DeletionTimestamp.IsZero() {
			continue
		}
		recorded := c.graph.owners.nodes(name)
		for node := range p.members.Intersection(p.plans.outdated).Difference(recorded) {
			c.Journal.join(name, node)
		}
		for node := range recorded.Difference(p.members) {
			c.Journal.leave(name, node)
		}
	}
}
