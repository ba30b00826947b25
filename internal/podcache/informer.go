// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// NewInformer returns an informer that stores pods as records, and client-go's own for
// any other kind. It is meant for the field NewInformer of the options of
// controller-runtime's cache.
func NewInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	if _, ok := object.(*corev1.Pod); !ok {
		return cache.NewSharedIndexInformer(lw, object, resync, indexers)
	}
	list := &pagedLister{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw), sizeFactor: 1}
	i := &informer{
		SharedIndexInformer: cache.NewSharedIndexInformer(list, object, resync, indexers),
		restorer:            newRestorer(), encoder: &encoder{}, list: list,
	}
	_ = i.SetTransform(nil) // It fails only once the informer runs.
	return i
}

// informer stores records and hands out Pods.
type informer struct {
	cache.SharedIndexInformer
	*restorer
	encoder *encoder
	list    *pagedLister
}

// SetTransform sets what is applied to each pod before it is stored.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	toRecord := func(object any) (any, error) {
		if _, done := object.(*record); done {
			return object, nil
		}
		if transform != nil {
			var err error
			if object, err = transform(object); err != nil {
				return nil, err
			}
		}
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("%T in the cache of pods", object)
		}
		return i.encoder.record(pod)
	}
	i.list.toRecord = toRecord
	return i.SharedIndexInformer.SetTransform(toRecord)
}

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(handler{h, i.restorer})
}

func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler{h, i.restorer}, resync)
}

func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(handler{h, i.restorer}, options)
}

func (i *informer) AddIndexers(indexers cache.Indexers) error {
	return i.SharedIndexInformer.AddIndexers(i.indexers(indexers))
}

func (i *informer) GetStore() cache.Store { return i.GetIndexer() }

func (i *informer) GetIndexer() cache.Indexer {
	return indexer{i.SharedIndexInformer.GetIndexer(), i.restorer}
}

// handler calls another handler with Pods.
type handler struct {
	cache.ResourceEventHandler
	*restorer
}

func (h handler) OnAdd(object any, initial bool) {
	h.ResourceEventHandler.OnAdd(h.object(object), initial)
}

func (h handler) OnUpdate(old, object any) {
	h.ResourceEventHandler.OnUpdate(h.object(old), h.object(object))
}

func (h handler) OnDelete(object any) { h.ResourceEventHandler.OnDelete(h.object(object)) }

// indexer reads Pods from a store of records.
type indexer struct {
	cache.Indexer
	*restorer
}

func (i indexer) AddIndexers(indexers cache.Indexers) error {
	return i.Indexer.AddIndexers(i.indexers(indexers))
}

func (i indexer) List() []any { return i.objects(i.Indexer.List()) }

func (i indexer) Get(object any) (any, bool, error) {
	found, exists, err := i.Indexer.Get(object)
	return i.object(found), exists, err
}

func (i indexer) GetByKey(key string) (any, bool, error) {
	found, exists, err := i.Indexer.GetByKey(key)
	return i.object(found), exists, err
}

func (i indexer) Index(name string, object any) ([]any, error) {
	found, err := i.Indexer.Index(name, object)
	return i.objects(found), err
}

func (i indexer) ByIndex(name, value string) ([]any, error) {
	found, err := i.Indexer.ByIndex(name, value)
	return i.objects(found), err
}
