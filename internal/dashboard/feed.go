// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/kube/reconnect"
)

// start starts to watch a kind, and returns the feed that stores the kind's objects. The caller
// must hold w.mu.
func (w *World) start(kind Kind) *feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &feed{stop: cancel, done: make(chan struct{}), synced: make(chan struct{}), failed: make(chan struct{}), lastUsed: w.now()}
	note := func(set func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		set()
		w.change(f)
	}
	read := sync.OnceFunc(func() { close(f.synced) })
	failed := sync.OnceFunc(func() { close(f.failed) })
	source := observed{cache.ToListerWatcherWithContext(kind.Source), func(err error) {
		// Record an error without a response of the API server, such as a connection error. The
		// function Stop below handles error responses.
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
			AddFunc: func(o any, initial bool) {
				if !initial {
					note(func() { f.touch(o, false) })
				}
			},
			UpdateFunc: func(_, o any) { note(func() { f.touch(o, false) }) },
			DeleteFunc: func(o any) { note(func() { f.touch(o, true) }) },
		},
	})
	f.store = store
	go func() {
		defer close(f.done)
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		select {
		case <-informer.HasSyncedChecker().Done(): // This does not poll every 100 ms, as WaitForCacheSync does.
			note(func() { f.sorted, f.touched = nil, nil })
			read()
		case <-ctx.Done():
		}
		running.Wait()
	}()
	return f
}

// touched is an object that was added, updated or deleted since the feed's sorted list of objects
// was computed.
type touched struct {
	metav1.Object
	deleted bool
}

// mostTouched is the maximum number of changed objects that are inserted into a feed's existing
// sorted list. After more changes, all objects are sorted again.
const mostTouched = 256

// touch records that an object was changed or deleted, so that the method list can update the
// sorted list of objects. The caller must hold the mutex of the World.
func (f *feed) touch(o any, deleted bool) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	object, ok := o.(metav1.Object)
	if !ok || len(f.touched) == mostTouched {
		f.sorted, f.touched = nil, nil
	}
	if ok && f.sorted != nil {
		f.touched = append(f.touched, touched{object, deleted})
	}
}

// list returns the kind's objects, sorted by namespace and name. Snapshots share the returned list,
// so it must not be changed. The caller must hold the World's mutex.
func (f *feed) list() []metav1.Object {
	if f.sorted == nil {
		stored := f.store.List()
		f.sorted = make([]metav1.Object, 0, len(stored))
		for _, o := range stored {
			if object, ok := o.(metav1.Object); ok {
				f.sorted = append(f.sorted, object)
			}
		}
		slices.SortFunc(f.sorted, compareNames)
		return f.sorted
	}
	if len(f.touched) == 0 {
		return f.sorted
	}
	list := slices.Clone(f.sorted)
	for _, t := range f.touched {
		at, found := slices.BinarySearchFunc(list, t.Object, compareNames)
		switch {
		case t.deleted && found:
			list = slices.Delete(list, at, at+1)
		case t.deleted:
		case found:
			list[at] = t.Object
		default:
			list = slices.Insert(list, at, t.Object)
		}
	}
	f.sorted, f.touched = list, nil
	return list
}

// compareNames orders objects by namespace and name.
func compareNames(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// observed wraps a ListerWatcher, and calls onError for each error of a list or watch request.
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
