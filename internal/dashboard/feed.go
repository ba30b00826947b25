// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/reconnect"
)

// start starts to watch a kind. The mutex must be held.
func (w *World) start(kind Kind) *feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &feed{stop: cancel, done: make(chan struct{}), synced: make(chan struct{}), lastUsed: w.now()}
	note := func(set func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		set()
		w.change(f)
	}
	nothing := func() {}
	read := sync.OnceFunc(func() { close(f.synced) })
	connection := &reconnect.Connection{
		Source:     cache.ToListerWatcherWithContext(kind.Source),
		OnLost:     func(err error) { note(func() { f.lost, f.lostAt = kind.Explain(err), w.now() }) },
		OnRegained: func() { note(func() { f.lost = "" }) },
		Stop: func(err error) {
			note(func() {
				f.since, f.lost = w.now(), ""
				if f.unserved = kind.Optional && apierrors.IsNotFound(err); !f.unserved {
					f.refused = kind.Explain(err)
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
