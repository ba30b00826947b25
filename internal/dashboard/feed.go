// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/kube/reconnect"
)

// start starts the watch of a kind. The caller must hold the World's mutex.
func (w *World) start(kind Kind) *feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &feed{stop: cancel, done: make(chan struct{}), synced: make(chan struct{}), failed: make(chan struct{}), lastUsed: w.now()}
	note := func(set func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		set()
		w.change(f)
	}
	nothing := func() {}
	read := sync.OnceFunc(func() { close(f.synced) })
	failed := sync.OnceFunc(func() { close(f.failed) })
	source := observed{cache.ToListerWatcherWithContext(kind.Source), func(err error) {
		// Error responses of the API server are handled by the connection's Stop function.
		if status := apierrors.APIStatus(nil); ctx.Err() == nil && !isClosed(f.synced) && !errors.As(err, &status) {
			note(func() { f.unreached = kind.Explain(err) })
			failed()
		}
	}}
	connection := &reconnect.Connection{
		Source:     source,
		OnLost:     func(err error) { note(func() { f.lost, f.lostAt = kind.Explain(err), w.now() }) },
		OnRegained: func() { note(func() { f.lost = "" }) },
		Stop: func(err error) {
			note(func() {
				f.since, f.lost = w.now(), ""
				if f.unserved = kind.Optional && apierrors.IsNotFound(err); !f.unserved {
					f.refused, f.forbidden = kind.Explain(err), apierrors.IsForbidden(err)
				}
			})
			read()
			cancel()
		},
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(connection.ListerWatcher(), kind.Source),
		ObjectType:    kind.Object,
		Transform:     kind.Keep,
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(_ any, initial bool) {
				if !initial {
					note(nothing)
				}
			},
			UpdateFunc: func(any, any) { note(nothing) },
			DeleteFunc: func(any) { note(nothing) },
		},
	})
	f.store = store
	go func() {
		defer close(f.done)
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			note(nothing)
			read()
		}
		running.Wait()
	}()
	return f
}

// observed wraps a ListerWatcher and calls onError for each error.
type observed struct {
	cache.ListerWatcherWithContext
	onError func(error)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (o observed) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := o.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil {
		o.onError(err)
	}
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (o observed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := o.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil {
		o.onError(err)
	}
	return w, err
}
