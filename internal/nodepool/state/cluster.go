// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state is the manager's model of all pools, nodes and pods: the members of each
// pool, what each node needs, and running sums. The informers feed it event by event, and
// for each event it returns the nodes and pools that must be reconciled.
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

// Cluster is a model of all pools, nodes and pods, which the informers feed and the
// controllers query. It knows at any time which pools concern which node, which nodes are
// out of sync, and the sums of resources per node and pool. All of that is updated event by
// event, so that no query iterates over all objects.
//
// Methods that change the model return what must be reconciled as a result. All methods may
// be called from several goroutines.
type Cluster struct {
	mu sync.Mutex

	profiles profiles
	known    knownProfiles
	// offered is how many nodes offer each resource. Requests for any other resource count
	// once a node offers it.
	offered map[corev1.ResourceName]int

	pools map[string]*poolState
	nodes map[string]*nodeState
	pods  map[types.UID]podState

	// owners is what the records on the nodes say about each pool, existing or not.
	owners map[string]*poolOwnership

	// formerKeys are keys that pools managed in the past.
	formerKeys formerKeys

	// tainted is when nodes got their latest NoExecute taint that a pool asks for. Entries
	// older than the maximum eviction duration are dropped when they are read.
	tainted map[string]time.Time
	// nodeCount is the number of nodes that exist.
	nodeCount int

	// recording means that joins and leaves are recorded as events. They are not while the
	// model is being filled, nor by a manager that is not the leader.
	recording bool

	// roomChanges counts the changes after which pods may find a place that they did not find
	// before, or the other way round.
	roomChanges uint64

	// dirty collects what the running method will return.
	dirty Dirty
}

// Dirty is what must be reconciled because of a change.
type Dirty struct {
	// Nodes are nodes that need a write.
	Nodes sets.Set[string]
	// Edited are pools that were created, edited or deleted, or that a leader looks at for
	// the first time.
	Edited sets.Set[string]
	// Pools are pools whose members, readiness, conditions or deletion may have changed.
	Pools sets.Set[string]
	// Utilization are pools of which only the utilization, the pending events or the writes
	// in progress have changed.
	Utilization sets.Set[string]
}

type poolState struct {
	object *tidekeeperv1.NodePool
	// ahead is the resourceVersion that a write of this process returned and that the
	// informer has not shown yet; empty if there is none. unplanned means that the nodes are
	// to be planned again when it has, and queued are those that need not be queued again.
	ahead     string
	unplanned bool
	queued    sets.Set[string]
	selector  labels.Selector
	// invalid is why the selector of the pool cannot be used, if so.
	invalid error

	// taints are those of the spec.
	taints []corev1.Taint

	members sets.Set[string]
	ready   int

	capacity, allocatable, requested resources.Sums
	level                            level

	// outdated are members that do not match the pool's spec yet, evictionPending those of
	// them that wait for a NoExecute taint, and evictionAllowed those that may get it now.
	outdated, evictionPending, evictionAllowed sets.Set[string]

	// statusWritten is when the status of the pool was last written, zero if it was not.
	statusWritten time.Time

	// conflicts are the conflicts of the pool with older ones, by node.
	conflicts map[string][]plan.Conflict

	// failing are members that were allowed to get a NoExecute taint and whose last write
	// failed, for whatever reason.
	failing sets.Set[string]

	// noRoom are members whose annotations leave no room for those of the pool. refused are
	// nodes for which the API server refuses the pool's settings, with its message.
	noRoom  sets.Set[string]
	refused map[string]string

	// cleanups is how many times each node was written since the pool is being deleted.
	cleanups map[string]int

	// writes is how many writes to nodes are in progress whose plan includes this pool.
	writes int

	events eventAggregator
}

type nodeState struct {
	name string
	// object is nil while the node is only known from its pods.
	object *corev1.Node

	ready                 bool
	capacity, allocatable []resources.Amount
	requested             resources.Sums
	room                  room
	// pods is the number of pods by profile.
	pods map[*profile]int

	// pools are the pools that select the node.
	pools []*poolState
	// ownership is the record on the node; empty if it is unreadable.
	ownership  ownership.Record
	unreadable bool
	// refused are the pools whose settings the API server refuses for this node.
	refused sets.Set[string]
	// summary is the summary of the plan for the node.
	summary plan.Summary
	// limiter limits the writes of the node; nil before the first write.
	limiter *rate.Limiter
}

// podState is what the model keeps of a pod.
type podState struct {
	node    *nodeState
	profile *profile
}

// poolOwnership is what the records on the nodes say about a pool: which nodes name it, and
// how many of them have each key.
type poolOwnership struct {
	nodes sets.Set[string]
	keys  map[setting.Key]int
}

// NewCluster returns an empty model.
func NewCluster() *Cluster {
	return &Cluster{
		profiles: profiles{}, known: knownProfiles{},
		offered: map[corev1.ResourceName]int{},
		tainted: map[string]time.Time{},
		pools:   map[string]*poolState{},
		nodes:   map[string]*nodeState{},
		pods:    map[types.UID]podState{},
		owners:  map[string]*poolOwnership{},
		dirty:   newDirty(),
	}
}

func newDirty() Dirty {
	return Dirty{Nodes: sets.New[string](), Edited: sets.New[string](), Pools: sets.New[string](), Utilization: sets.New[string]()}
}

// lock begins a method that changes the model; unlock returns what it made dirty.
func (c *Cluster) lock() { c.mu.Lock() }

func (c *Cluster) unlock() Dirty {
	done := c.dirty
	c.dirty = newDirty()
	c.mu.Unlock()
	return done
}
