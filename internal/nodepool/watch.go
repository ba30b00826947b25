// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// A burst of changes to a pool is one reconcile: changes of its members wait
// this long for company, those of its water level a little longer.
const (
	poolDelay  = 20 * time.Millisecond
	levelDelay = 250 * time.Millisecond
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// feed takes what the informers see into the fleet, and puts into the queues
// of both controllers what has to be looked at because of it. It is fed from
// the moment the cache starts, so that a standby that becomes the leader knows
// everything already.
type feed struct {
	fleet    *fleet
	handlers []toolscache.ResourceEventHandlerRegistration

	mu           sync.Mutex
	nodes, pools queue
}

// newFeed lets the fleet be fed by the informers of the cache.
func newFeed(ctx context.Context, informers cache.Informers, f *fleet) (*feed, error) {
	d := &feed{fleet: f}
	if err := errors.Join(
		follow(ctx, d, informers, f.setPool, func(p *tidekeeperv1.NodePool) todo { return f.deletePool(p.Name) }),
		follow(ctx, d, informers, f.setNode, func(n *corev1.Node) todo { return f.deleteNode(n.Name) }),
		follow(ctx, d, informers, f.setPod, func(p *corev1.Pod) todo { return f.deletePod(p.UID) }),
	); err != nil {
		return nil, err
	}
	return d, nil
}

// object is a pointer to an API type T.
type object[T any] interface {
	*T
	client.Object
}

// follow hands every object of one kind to set when it appears or changes, and
// to remove when it is gone.
func follow[T any, O object[T]](ctx context.Context, d *feed, informers cache.Informers, set, remove func(O) todo) error {
	kind := O(new(T))
	informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("get the informer of %T: %w", kind, err)
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { d.push(set(o.(O))) },
		UpdateFunc: func(_, o any) { d.push(set(o.(O))) },
		DeleteFunc: func(o any) {
			// After a gap in the watch all that is known is the last state seen.
			if gap, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gap.Obj
			}
			d.push(remove(o.(O)))
		},
	})
	if err != nil {
		return fmt.Errorf("follow %T: %w", kind, err)
	}
	d.handlers = append(d.handlers, handler)
	return nil
}

// push queues what there is to do. Before a controller has started, there is
// nothing to queue it in: it is given everything when it does.
func (d *feed) push(t todo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes != nil {
		for name := range t.nodes {
			d.nodes.Add(request(name))
		}
	}
	if d.pools != nil {
		for name := range t.pools {
			d.pools.AddAfter(request(name), poolDelay)
		}
		for name := range t.levels.Difference(t.pools) {
			d.pools.AddAfter(request(name), levelDelay)
		}
	}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// feedSource is the feed as the source of one controller.
type feedSource struct {
	*feed
	// queue is where the feed keeps that controller's queue.
	queue *queue
}

// Start implements [sigs.k8s.io/controller-runtime/pkg/source.Source].
func (s feedSource) Start(_ context.Context, q queue) error {
	s.mu.Lock()
	*s.queue = q
	s.mu.Unlock()
	s.push(s.fleet.everything())
	return nil
}

// WaitForSync implements [sigs.k8s.io/controller-runtime/pkg/source.SyncingSource]:
// nothing is decided before the fleet has seen all that the cache has.
func (s feedSource) WaitForSync(ctx context.Context) error {
	synced := make([]toolscache.InformerSynced, len(s.handlers))
	for i, handler := range s.handlers {
		synced[i] = handler.HasSynced
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the caches of node pools, nodes and pods did not fill in time")
	}
	return nil
}

// nodeSource feeds the node controller.
func (d *feed) nodeSource() feedSource { return feedSource{d, &d.nodes} }

// poolSource feeds the pool controller.
func (d *feed) poolSource() feedSource { return feedSource{d, &d.pools} }
