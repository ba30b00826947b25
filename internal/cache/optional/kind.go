// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind is an optional kind. While the cluster serves it, its objects are read from a separate
// cache.
type kind struct {
	gvk    schema.GroupVersionKind
	object client.Object
	// newCache creates a cache of the kind. It is called each time the cluster starts to serve the
	// kind.
	newCache func() (cache.Cache, error)
	// checked is closed after the first discovery, once it is known whether the cluster serves the
	// kind.
	checked <-chan struct{}
	// patience is the maximum time to wait for the kind's first list. Afterwards, the kind counts
	// as not served until a list succeeds.
	patience time.Duration

	mu            sync.Mutex
	registrations []*registration
	onChange      []func()
	// running is the kind's current cache. It is nil while the cluster does not serve the kind.
	running *running
}

// running is the cache of an optional kind while the cluster serves the kind.
type running struct {
	cache    cache.Cache
	informer cache.Informer
	cancel   context.CancelFunc
	stopped  chan struct{}
	// synced is closed when the cache contains all objects of the kind. Before, nothing is read
	// from the cache.
	synced chan struct{}
	// settled is closed when the cache is complete, or when the kind's first list took longer than
	// patience. A kind that cannot be listed, because of missing rights or a broken conversion
	// webhook, counts as not served until a list succeeds, so that the start of the manager does
	// not wait for it.
	settled chan struct{}
}

// listPatience is the maximum time to wait for an optional kind's first list.
const listPatience = 10 * time.Second

func newKind(gvk schema.GroupVersionKind, object client.Object, checked <-chan struct{}, newCache func() (cache.Cache, error)) *kind {
	return &kind{gvk: gvk, object: object, newCache: newCache, checked: checked, patience: listPatience}
}

func (k *kind) isRunning() bool { return k.current() != nil }

func (k *kind) current() *running {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running
}

// start starts the kind's watch, which runs until stop is called or the context ends.
func (k *kind) start(ctx context.Context) error {
	store, err := k.newCache()
	if err != nil {
		return err
	}
	informer, err := store.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cache: store, informer: informer, cancel: cancel, stopped: make(chan struct{}), synced: make(chan struct{}), settled: make(chan struct{})}
	k.mu.Lock()
	k.running = r
	k.mu.Unlock()
	go func() {
		defer close(r.stopped)
		if err := store.Start(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "The cache of an optional kind has failed", "kind", k.gvk.Kind)
		}
	}()
	go func() {
		if store.WaitForCacheSync(ctx) {
			k.completed(r)
		}
	}()
	go k.settle(ctx, r)
	return nil
}

// settle closes r.settled once the cache is complete, the watch of the kind has ended, or
// k.patience has elapsed.
func (k *kind) settle(ctx context.Context, r *running) {
	defer close(r.settled)
	patience := time.NewTimer(k.patience)
	defer patience.Stop()
	select {
	case <-r.synced:
	case <-r.stopped:
	case <-patience.C:
		ctrl.LoggerFrom(ctx).Info("Cannot list an optional kind that the cluster serves: it counts as not served until the list succeeds",
			"kind", k.gvk.Kind, "groupVersion", k.gvk.GroupVersion(), "after", k.patience.String())
	}
}

// completed marks the cache as readable, then attaches the event handlers. In the opposite order, a
// handler could receive an object that it does not find in the cache.
func (k *kind) completed(r *running) {
	k.mu.Lock()
	if k.running != r {
		k.mu.Unlock()
		return
	}
	close(r.synced)
	for _, registration := range k.registrations {
		registration.attach(r)
	}
	onChange := k.onChange
	k.mu.Unlock()
	for _, f := range onChange {
		f()
	}
}

// stop ends the kind's watch. Event handlers are not called with deletions of the cached objects: a
// controller that must react to the removal of the kind uses [Changes].
func (k *kind) stop() {
	k.mu.Lock()
	r := k.running
	k.running = nil
	if r == nil {
		k.mu.Unlock()
		return
	}
	registrations, onChange := k.registrations, k.onChange
	for _, registration := range registrations {
		registration.detach()
	}
	k.mu.Unlock()
	r.cancel()
	<-r.stopped
	for _, f := range onChange {
		f()
	}
}

// reader returns the kind's cache, or a NoKindMatchError if the kind cannot be read.
func (k *kind) reader() (client.Reader, error) {
	if r := k.current(); r != nil && isClosed(r.synced) {
		return r.cache, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: k.gvk.GroupKind(), SearchedVersions: []string{k.gvk.Version}}
}

// waitForSync waits until the kind's cache is complete, but for k.patience at most. It does not
// wait for a kind that the cluster does not serve. It returns false if the context ends first.
func (k *kind) waitForSync(ctx context.Context) bool {
	r := k.current()
	if r == nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-r.settled:
	}
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var _ cache.Informer = &kind{}

var _ toolscache.ResourceEventHandlerRegistration = &registration{}
