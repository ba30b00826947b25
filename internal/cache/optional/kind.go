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

// kind is an optional kind. While the cluster serves it, it has a cache of its own.
type kind struct {
	gvk    schema.GroupVersionKind
	object client.Object
	// newCache creates the cache of the kind.
	newCache func() (cache.Cache, error)
	// checked is closed once it is known whether the cluster serves the kind.
	checked <-chan struct{}
	// patience is the maximum time to wait for the first list of the kind.
	patience time.Duration

	mu            sync.Mutex
	registrations []*registration
	onChange      []func()
	// running is nil while the cluster does not serve the kind.
	running *running
}

// running is the cache of a kind that the cluster serves.
type running struct {
	cache    cache.Cache
	informer cache.Informer
	cancel   context.CancelFunc
	stopped  chan struct{}
	// synced is closed when the cache is complete. Before that, the cache is not read.
	synced chan struct{}
	// settled is closed when the cache is complete or the wait for it has ended: a kind that
	// cannot be listed, because of missing rights or a broken conversion webhook, counts as not
	// served until its list succeeds, so that it holds up no other kind.
	settled chan struct{}
}

// listPatience is the maximum time to wait for the first list of an optional kind.
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

// start watches the kind until stop is called or the context ends.
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

// settle waits until the cache is complete, the kind is stopped, or the time patience has
// elapsed.
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

// completed registers the handlers, now that the cache can be read: a handler that received an
// object earlier would not find it in the cache.
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

// stop ends the watch. Handlers receive no deletions of the cached objects: a controller that
// has to act uses [Changes].
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

// reader returns the cache to read the kind from.
func (k *kind) reader() (client.Reader, error) {
	if r := k.current(); r != nil && isClosed(r.synced) {
		return r.cache, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: k.gvk.GroupKind(), SearchedVersions: []string{k.gvk.Version}}
}

// waitForSync waits until the cache of the kind is complete, if the cluster serves the kind and
// the kind can be listed.
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
