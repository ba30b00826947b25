// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state is the manager's in-memory model of all pools, nodes and pods. It holds the members
// of each pool, the plan of each node, and running sums of resources. Informers pass each event to
// the model, which returns the nodes and pools that must be reconciled as a result.
//
//	cluster.go     the model, protected by a lock; methods for the informers
//	snapshot.go    the state of a pool, and the input of headroom evaluations
//	drainable.go   the input of evaluations of whether nodes can be drained
//	writes.go      writes of nodes: permission, progress and results
//	evictions.go   the nodes that may get a NoExecute taint
//	emptying.go    the nodes that are being emptied within budgets
//	backlog.go     the nodes that wait for new plans after a change of a pool
//	graph.go       pools and nodes, and the links between them
//	pool.go, sums.go, turns.go
//	               a pool: its members, their resource sums, and which of them may get a
//	               NoExecute taint
//	node.go        a node, and the differences between its versions
//	owners.go      an index of all nodes' ownership annotations by pool
//	formerkeys.go  keys that pools managed in the past
//	journal.go, aggregator.go
//	               the changes to pools, until they are reported as events
//	dirty.go       the nodes and pools that must be reconciled
//	load/          the requests of the pods on each node
//	room/          the resources free for new pods on each node and in each pool
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

// Cluster is an in-memory model of all pools, nodes and pods. Informers update it, and controllers
// query it. It provides the pools that affect each node, the nodes that are out of sync, and
// resource sums per node and pool. The sums are updated with every event, so that no query has to
// iterate over all objects.
//
// Methods that change the model return the nodes and pools that must be reconciled as a result. All
// methods are safe for concurrent use.
type Cluster struct {
	// Journal collects the changes to pools that will be reported as events.
	Journal *Journal
	// Emptying has the methods for nodes whose pods are evicted within PodDisruptionBudgets before
	// the nodes get NoExecute taints.
	Emptying Emptying
	// Planning has the method for nodes that wait for new plans.
	Planning Planning
	guarded
}

// guarded is a graph protected by a lock.
type guarded struct {
	mu    sync.Mutex
	graph graph
}

// change calls `do` with the lock held. It returns the nodes and pools that must be reconciled as a
// result of the changes that `do` makes.
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
	c.Emptying, c.Planning = Emptying{&c.guarded}, Planning{&c.guarded}
	return c
}

// SetPool adds or updates a pool. It ignores versions older than the latest version passed to
// [Cluster.PoolWritten].
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
		g.putPool(object, queued)
	})
}

// PoolWritten updates a pool with the API server's response to a write of the pool's finalizer or
// status, so that nodes waiting for the write need not wait for the informer. statusWritten is the
// time of the write, or zero if the status was not written.
//
// The waiting nodes, and those that wait for a plan, are queued without new plans, because planning
// all of them would delay the first writes. The node controller computes a plan for each node before
// writing it, and the informer's event leads to new plans for all nodes. Until the informer delivers
// the written version, older versions from the informer are ignored.
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
			p.ahead.queued = p.plans.outdated.Union(g.backlog.queue(answer.Name))
			g.dirty.Nodes = g.dirty.Nodes.Union(p.ahead.queued)
		}
	})
}

// isOlder reports whether resourceVersion a of an object is older than its resourceVersion b. It
// returns false if the two cannot be compared.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// DeletePool removes a pool from the model.
func (c *Cluster) DeletePool(name string) Dirty {
	return c.change(func(g *graph) { g.dropPool(name) })
}

// SetNode adds or updates a node in the model.
func (c *Cluster) SetNode(object *corev1.Node) Dirty {
	return c.change(func(g *graph) { g.putNode(object) })
}

// DeleteNode removes a node from the model.
func (c *Cluster) DeleteNode(name string) Dirty {
	return c.change(func(g *graph) { g.dropNode(name) })
}

// SetPod adds or updates a pod. See [load.Nodes.SetPod] for the requirements on pods that share
// containers in memory.
func (c *Cluster) SetPod(pod *corev1.Pod) Dirty {
	return c.change(func(g *graph) {
		came, left := g.loads.SetPod(pod)
		g.loadsChanged(came, left)
	})
}

// DeletePod removes a pod from the model.
func (c *Cluster) DeletePod(uid types.UID) Dirty {
	return c.change(func(g *graph) { g.loadsChanged(g.loads.DeletePod(uid)) })
}

// AllKeys returns all nodes that need a write or are being emptied, and all pools. A controller
// adds them to its queue when it starts.
func (c *Cluster) AllKeys() Dirty {
	return c.change(func(g *graph) {
		for name, n := range g.nodes {
			if n.summary.NeedsWrite {
				g.dirty.Nodes.Insert(name)
			}
			g.emptyingChanged(n)
		}
		for name := range g.pools {
			g.dirty.Edited.Insert(name)
		}
	})
}

// StartRecording starts recording nodes that join or leave pools in the journal. It also records
// earlier joins and leaves that no manager has recorded, as far as they can be derived from the
// nodes' ownership annotations. While nodes wait for their plans, it does nothing.
func (c *Cluster) StartRecording() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A pool is reconciled again, which leads here, when its nodes are planned.
	if !c.graph.backlog.empty() || !c.Journal.startMoves() {
		return
	}
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
