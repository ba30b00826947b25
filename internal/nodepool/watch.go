// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/informers"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
)

// poolDelay, utilizationDelay and emptyingDelay are the delays after which changed pools and nodes
// are queued, so that a burst of changes causes a single reconcile. poolDelay applies to changes of
// a pool's members, and utilizationDelay to changes of its utilization. An edit of a pool is queued
// immediately, because nodes wait until the status lists the keys of the new settings.
//
// emptyingDelay applies to nodes that are being emptied, because their pods leave in quick
// succession.
const (
	poolDelay        = 20 * time.Millisecond
	utilizationDelay = 250 * time.Millisecond
	emptyingDelay    = 100 * time.Millisecond
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// eventFeed passes informer events to the model, and queues the nodes and pools that must be
// reconciled as a result. It starts with the cache rather than with the controllers, so that a
// standby has a complete model when it becomes the leader.
type eventFeed struct {
	cluster       *state.Cluster
	registrations []toolscache.ResourceEventHandlerRegistration

	mu                     sync.Mutex
	nodes, emptying, pools queue
	// planning is set while a goroutine computes the plans of the nodes of changed pools. unplanned is
	// set if it has to go on.
	planning, unplanned bool
}

// newEventFeed returns a feed and registers its handlers with the cache's informers.
func newEventFeed(ctx context.Context, in cache.Informers, cluster *state.Cluster) (*eventFeed, error) {
	f := &eventFeed{cluster: cluster}
	pools, poolsErr := informers.Follow(ctx, in, pushing(f, cluster.SetPool, func(pool *tidekeeperv1.NodePool) state.Dirty { return cluster.DeletePool(pool.Name) }))
	nodes, nodesErr := informers.Follow(ctx, in, pushing(f, cluster.SetNode, func(node *corev1.Node) state.Dirty { return cluster.DeleteNode(node.Name) }))
	pods, podsErr := informers.Follow(ctx, in, pushing(f, cluster.SetPod, func(pod *corev1.Pod) state.Dirty { return cluster.DeletePod(pod.UID) }))
	f.registrations = []toolscache.ResourceEventHandlerRegistration{pools, nodes, pods}
	if err := errors.Join(poolsErr, nodesErr, podsErr); err != nil {
		return nil, err
	}
	return f, nil
}

// pushing returns an event handler that passes new and changed objects to `set`, and deleted
// objects to `remove`. It queues the nodes and pools that these functions return.
func pushing[T any](f *eventFeed, set, remove func(T) state.Dirty) informers.Handler[T] {
	return informers.Handler[T]{
		Add:    func(object T, _ bool) { f.push(set(object)) },
		Update: func(_, object T) { f.push(set(object)) },
		Delete: func(object T, _ bool) { f.push(remove(object)) },
	}
}

// push adds the nodes and pools in `dirty` to the queues of the controllers. A controller that has
// not started has no queue yet. When it starts, [feedSource.Start] adds all nodes and pools to its
// queue.
func (f *eventFeed) push(dirty state.Dirty) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unplanned = f.unplanned || dirty.Unplanned
	if f.unplanned && !f.planning {
		f.planning = true
		go f.planAll()
	}
	if f.nodes != nil {
		for name := range dirty.Nodes {
			f.nodes.Add(requestFor(name))
		}
	}
	if f.emptying != nil {
		for name := range dirty.Emptying {
			f.emptying.AddAfter(requestFor(name), emptyingDelay)
		}
	}
	if f.pools != nil {
		for name := range dirty.Edited {
			f.pools.Add(requestFor(name))
		}
		for name := range dirty.Pools.Difference(dirty.Edited) {
			f.pools.AddAfter(requestFor(name), poolDelay)
		}
		for name := range dirty.Utilization.Difference(dirty.Pools).Difference(dirty.Edited) {
			f.pools.AddAfter(requestFor(name), utilizationDelay)
		}
	}
}

// planAll computes the plans of all nodes that wait for one, and ends.
func (f *eventFeed) planAll() {
	for f.goesOn() {
		f.push(f.cluster.Planning.More())
	}
}

// goesOn reports whether planAll has to go on.
func (f *eventFeed) goesOn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planning, f.unplanned = f.unplanned, false
	return f.planning
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// feedSource is a controller-runtime source that adds the feed's nodes or pools to the queue of a
// controller.
type feedSource struct {
	*eventFeed
	// queue points to the field of the feed that holds the controller's queue.
	queue *queue
}

// Start implements [sigs.k8s.io/controller-runtime/pkg/source.Source].
func (s feedSource) Start(_ context.Context, q queue) error {
	s.mu.Lock()
	*s.queue = q
	s.mu.Unlock()
	s.push(s.cluster.AllKeys())
	return nil
}

// WaitForSync implements [sigs.k8s.io/controller-runtime/pkg/source.SyncingSource]. The controllers
// must not start before the model contains all objects of the cache.
func (s feedSource) WaitForSync(ctx context.Context) error {
	synced := make([]toolscache.InformerSynced, len(s.registrations))
	for i, registration := range s.registrations {
		synced[i] = registration.HasSynced
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the caches of node pools, nodes and pods did not sync in time")
	}
	return nil
}

// nodeSource returns the source for the node controller.
func (f *eventFeed) nodeSource() feedSource { return feedSource{f, &f.nodes} }

// emptyingSource returns the event source for the controller that empties nodes.
func (f *eventFeed) emptyingSource() feedSource { return feedSource{f, &f.emptying} }

// poolSource returns the source for the pool controller.
func (f *eventFeed) poolSource() feedSource { return feedSource{f, &f.pools} }
