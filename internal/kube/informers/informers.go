// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informers adds typed event handlers to informers. It unwraps the tombstones that
// client-go delivers for deletions that the watch missed.
package informers

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/cacheapi"
)

// Handler is a [cache.ResourceEventHandler] for objects of type T. Events whose handler function is
// nil are ignored.
type Handler[T any] struct {
	// Add is called with each new object. initial is true if the object was in the initial list.
	Add func(object T, initial bool)
	// Update is called with the old and new version of each changed object. After a gap in the
	// watch, the new version may be a different object with the same name, so handlers must compare
	// UIDs.
	Update func(old, object T)
	// Delete is called with the last known state of each deleted object. missed is true if the
	// informer missed the deletion because of a gap in the watch. The state may then be outdated.
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

// object is the constraint for pointers to the API type T.
type object[T any] interface {
	*T
	cacheapi.Object
}

// Follow adds the handler to the informer for objects of type T, and starts the informer if the
// cache does not have it yet. It does not wait for the informer to sync.
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
