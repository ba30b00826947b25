// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers adds typed event handlers to informers, and removes the tombstones in which
// client-go wraps the objects of deletions that it missed.
package informers

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/cacheapi"
)

// Handler is a [cache.ResourceEventHandler] for objects of a type. A nil function ignores its
// events.
type Handler[T any] struct {
	// Add is called with each new object. initial is true if the object was in the first list.
	Add func(object T, initial bool)
	// Update is called with each changed object. After a gap in the watch, object may be
	// another object of the same name: compare their UIDs.
	Update func(old, object T)
	// Delete is called with the last known state of each deleted object. missed is true if the
	// informer missed the deletion during a gap in the watch; the state may then be outdated.
	Delete func(last T, missed bool)
}

// OnAdd implements [cache.ResourceEventHandler].
func (h Handler[T]) OnAdd(object any, initial bool) {
	if h.Add != nil {
		h.Add(object.(T), initial)
	}
}

// OnUpdate implements [cache.ResourceEventHandler].
func (h Handler[T]) OnUpdate(old, object any) {
	if h.Update != nil {
		h.Update(old.(T), object.(T))
	}
}

// OnDelete implements [cache.ResourceEventHandler].
func (h Handler[T]) OnDelete(object any) {
	if h.Delete == nil {
		return
	}
	tombstone, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = tombstone.Obj
	}
	h.Delete(object.(T), missed)
}

// object is a pointer to the API type T.
type object[T any] interface {
	*T
	cacheapi.Object
}

// Follow adds the handler to the informer for objects of its type, and starts that
// informer if the cache has none yet. It does not wait for the informer to sync.
func Follow[T any, O object[T]](ctx context.Context, informers cacheapi.Informers, handler Handler[O]) (cache.ResourceEventHandlerRegistration, error) {
	kind := O(new(T))
	informer, err := informers.GetInformer(ctx, kind, cacheapi.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("get the informer for %T: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, fmt.Errorf("follow %T: %w", kind, err)
	}
	return registration, nil
}
