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

// NewInformer returns an informer: of pods one that keeps them as records, of all
// else client-go's own. It is meant for the field NewInformer of the options of
// controller-runtime's cache.
func NewInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	if _, ok := object.(*corev1.Pod); !ok {
		return cache.NewSharedIndexInformer(lw, object, resync, indexers)
	}
	pages := &lister{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw)}
	i := &informer{cache.NewSharedIndexInformer(pages, object, resync, indexers), newHydrator(), pages}
	_ = i.SetTransform(nil) // It is too late for that only once the informer runs.
	return i
}

// informer hands out pods and keeps records.
type informer struct {
	cache.SharedIndexInformer
	*hydrator
	lister *lister
}

// SetTransform sets what is done to each pod before it is kept.
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
		return recordOf(pod)
	}
	i.lister.toRecord = toRecord
	return i.SharedIndexInformer.SetTransform(toRecord)
}

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(handler{h, i.hydrator})
}

func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler{h, i.hydrator}, resync)
}

func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(handler{h, i.hydrator}, options)
}

func (i *informer) AddIndexers(indexers cache.Indexers) error {
	return i.SharedIndexInformer.AddIndexers(i.ofPods(indexers))
}

func (i *informer) GetStore() cache.Store { return i.GetIndexer() }

func (i *informer) GetIndexer() cache.Indexer {
	return indexer{i.SharedIndexInformer.GetIndexer(), i.hydrator}
}

// handler hands pods to a handler.
type handler struct {
	cache.ResourceEventHandler
	*hydrator
}

func (h handler) OnAdd(object any, first bool) { h.ResourceEventHandler.OnAdd(h.podOf(object), first) }
func (h handler) OnUpdate(old, object any) {
	h.ResourceEventHandler.OnUpdate(h.podOf(old), h.podOf(object))
}
func (h handler) OnDelete(object any) { h.ResourceEventHandler.OnDelete(h.podOf(object)) }

// indexer reads pods from a store of records.
type indexer struct {
	cache.Indexer
	*hydrator
}

func (i indexer) AddIndexers(indexers cache.Indexers) error {
	return i.Indexer.AddIndexers(i.ofPods(indexers))
}

func (i indexer) List() []any { return i.podsOf(i.Indexer.List()) }

func (i indexer) Get(object any) (any, bool, error) {
	found, exists, err := i.Indexer.Get(object)
	return i.podOf(found), exists, err
}

func (i indexer) GetByKey(key string) (any, bool, error) {
	found, exists, err := i.Indexer.GetByKey(key)
	return i.podOf(found), exists, err
}

func (i indexer) Index(name string, object any) ([]any, error) {
	found, err := i.Indexer.Index(name, object)
	return i.podsOf(found), err
}

func (i indexer) ByIndex(name, value string) ([]any, error) {
	found, err := i.Indexer.ByIndex(name, value)
	return i.podsOf(found), err
}
