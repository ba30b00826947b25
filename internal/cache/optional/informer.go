// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"errors"
	"slices"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
)

// registration is an event handler for an optional kind. It stays registered even if the CRD of the
// kind is removed and installed again.
type registration struct {
	kind    *kind
	handler toolscache.ResourceEventHandler
	options toolscache.HandlerOptions

	mu sync.Mutex
	// current is the handler's registration with the informer of the kind's current cache. It is
	// nil while there is no such cache, or while the cache is incomplete.
	current toolscache.ResourceEventHandlerRegistration
}

// attach adds the handler to the informer of the kind's current cache.
func (r *registration) attach(now *running) {
	current, err := now.informer.AddEventHandlerWithOptions(r.handler, r.options)
	if err != nil {
		// AddEventHandlerWithOptions fails only if the informer has stopped, and then the handler
		// needs no registration.
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = current
}

func (r *registration) detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = nil
}

// HasSynced implements [toolscache.ResourceEventHandlerRegistration].
func (r *registration) HasSynced() bool {
	if !isClosed(r.kind.checked) {
		return false
	}
	now := r.kind.current()
	if now == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return isClosed(now.settled) && !isClosed(now.synced)
	}
	return r.current.HasSynced()
}

// HasSyncedChecker implements [toolscache.ResourceEventHandlerRegistration].
func (r *registration) HasSyncedChecker() toolscache.DoneChecker {
	return &checker{name: r.kind.gvk.String(), hasSynced: r.HasSynced}
}

// checker is a [toolscache.DoneChecker] that polls hasSynced until it returns true.
type checker struct {
	name      string
	hasSynced func() bool
	once      sync.Once
	done      chan struct{}
}

// Name implements [toolscache.DoneChecker].
func (c *checker) Name() string { return c.name }

// Done implements [toolscache.DoneChecker].
func (c *checker) Done() <-chan struct{} {
	c.once.Do(func() {
		c.done = make(chan struct{})
		go func() {
			for !c.hasSynced() {
				time.Sleep(100 * time.Millisecond)
			}
			close(c.done)
		}()
	})
	return c.done
}

// AddEventHandler implements [cache.Informer].
func (k *kind) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return k.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements [cache.Informer].
func (k *kind) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return k.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements [cache.Informer].
func (k *kind) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	r := &registration{kind: k, handler: handler, options: options}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.registrations = append(k.registrations, r)
	if now := k.running; now != nil && isClosed(now.synced) {
		r.attach(now)
	}
	return r, nil
}

// RemoveEventHandler implements [cache.Informer].
func (k *kind) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.registrations, func(r *registration) bool { return toolscache.ResourceEventHandlerRegistration(r) == handle })
	if i < 0 {
		return nil
	}
	r := k.registrations[i]
	k.registrations = slices.Delete(slices.Clone(k.registrations), i, i+1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.running == nil || r.current == nil {
		return nil
	}
	return k.running.informer.RemoveEventHandler(r.current)
}

// AddIndexers implements [cache.Informer].
func (k *kind) AddIndexers(toolscache.Indexers) error {
	return errors.New("there are no indexes on optional kinds")
}

// HasSynced implements [cache.Informer].
func (k *kind) HasSynced() bool {
	r := k.current()
	// The channel synced is also checked, because it is closed shortly before settled. In between,
	// handlers may already have received objects, so HasSynced must return true.
	return isClosed(k.checked) && (r == nil || isClosed(r.synced) || isClosed(r.settled))
}

// HasSyncedChecker implements [cache.Informer].
func (k *kind) HasSyncedChecker() toolscache.DoneChecker {
	return &checker{name: k.gvk.String(), hasSynced: k.HasSynced}
}

// IsStopped implements [cache.Informer].
func (k *kind) IsStopped() bool { return false }
