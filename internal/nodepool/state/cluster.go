// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state is the manager's model of all pools, nodes and pods: who is in which
// pool, what each node lacks, and running sums. The informers feed it event by event,
// and it answers each with what must be looked at because of it.
package state

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/ownership"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// Cluster is all pools, nodes and pods as one model that the informers feed and
// the controllers ask. It knows at any moment which pools have to do with which
// node, which nodes are not as they should be, and the sums of resources per
// node and pool, all of it kept up event by event: no answer needs a walk over
// the world.
//
// What is fed in is answered with what has to be looked at because of it. All
// methods may be called from several goroutines.
type Cluster struct {
	mu sync.Mutex

	profiles profiles
	// offered is how many nodes offer each resource. What a pod requests of any
	// other counts once a node offers it.
	offered map[corev1.ResourceName]int

	pools map[string]*poolState
	nodes map[string]*nodeState
	pods  map[types.UID]podState

	// owners is what the records on the nodes say of each pool, existing or not.
	owners map[string]*poolOwnership

	// formerKeys are keys that pools have vouched for in former times.
	formerKeys formerKeys

	// tainted is since when nodes have the latest NoExecute taint that a pool asks
	// for. What is longer ago than nodes are waited for is dropped when it is read.
	tainted map[string]time.Time
	// nodeCount is how many nodes there are.
	nodeCount int

	// recording: joining and leaving is news. It is not while the model is being
	// filled, nor for a manager that is not the leader.
	recording bool

	// dirty collects what the running method will answer.
	dirty Dirty
}

// Dirty is what has to be looked at because of a change.
type Dirty struct {
	// Nodes that are not as they should be.
	Nodes sets.Set[string]
	// Pools whose membership, readiness, conditions or deletion may have
	// something new.
	Pools sets.Set[string]
	// Levels are pools of which only the water level has changed.
	Levels sets.Set[string]
}

type poolState struct {
	object   *tidekeeperv1.NodePool
	selector labels.Selector
	// invalid is why the pool selects nothing, if it cannot.
	invalid error

	members sets.Set[string]
	ready   int

	capacity, allocatable, requested resources.Sums

	// outdated are members that do not look like the pool yet, heldBack those
	// of them that wait for a NoExecute taint, and admitted those that may get
	// it now.
	outdated, evictionPending, evictionAllowed sets.Set[string]

	// conflicts of the pool with older ones, by node.
	conflicts map[string][]plan.Conflict

	// failing are members whose last write went wrong, for whatever reason.
	failing sets.Set[string]

	// noRoom are members whose annotations leave no room for those of the pool,
	// refused are nodes that cannot be written for the pool, with the API server's
	// words.
	noRoom  sets.Set[string]
	refused map[string]string

	// cleanups is how often each node was cleared of what is recorded for the pool,
	// since that is being deleted.
	cleanups map[string]int

	// writes is how many nodes are being written to with this pool in mind.
	writes int

	events eventAggregator
}

type nodeState struct {
	name string
	// object is nil as long as the node is only known from its pods.
	object *corev1.Node

	ready                 bool
	capacity, allocatable []resources.Amount
	requested             resources.Sums
	// pods is how many pods there are of each shape.
	pods map[*profile]int

	// pools that select the node.
	pools []*poolState
	// ownership as the node carries it; empty if it is unreadable.
	ownership  ownership.Record
	unreadable bool
	// refused are the pools for which the node cannot be written.
	refused sets.Set[string]
	// summary is what is to be known of the plan for the node.
	summary plan.Summary
	// limiter is how often the node may be written; nil before the first time.
	limiter *rate.Limiter
}

// podState is all that is kept of a pod.
type podState struct {
	node    *nodeState
	profile *profile
}

// poolOwnership is what the records on the nodes say of a pool.
type poolOwnership struct {
	nodes sets.Set[string]
	keys  map[setting.Key]int
}

// NewCluster returns a cluster that has seen nothing yet.
func NewCluster() *Cluster {
	return &Cluster{
		profiles: profiles{},
		offered:  map[corev1.ResourceName]int{},
		tainted:  map[string]time.Time{},
		pools:    map[string]*poolState{},
		nodes:    map[string]*nodeState{},
		pods:     map[types.UID]podState{},
		owners:   map[string]*poolOwnership{},
		dirty:    newDirty(),
	}
}

func newDirty() Dirty {
	return Dirty{Nodes: sets.New[string](), Pools: sets.New[string](), Levels: sets.New[string]()}
}

// lock begins a method; its answer is made by unlock.
func (c *Cluster) lock() { c.mu.Lock() }

func (c *Cluster) unlock() Dirty {
	done := c.dirty
	c.dirty = newDirty()
	c.mu.Unlock()
	return done
}
