// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// NewInformerFunc is the type of the field NewInformer in controller-runtime's cache options.
type NewInformerFunc = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// NewInformer returns an informer that stores pods as records. For any other kind it returns
// client-go's informer. It is a [NewInformerFunc].
func NewInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	if _, ok := object.(*corev1.Pod); !ok {
		return cache.NewSharedIndexInformer(lw, object, resync, indexers)
	}
	return newPodInformer(lw, resync, indexers, &encoder{}, nil, nil)
}

// Content declares the fields of pods and nodes that a cache keeps, and how they are decoded.
type Content struct {
	Pods KeptPodFields
	// Nodes lists the paths of all fields that the transform of nodes reads.
	Nodes []string
	// Listing, if not nil, is called at the start of each pod list that has several pages, with the
	// total number of pods.
	Listing func(pods int64)
	// Verify, if not nil, makes client-go decode every object a second time. If the two results
	// differ, this is counted and logged, and client-go's result is cached. Verify is also the
	// clock for the log's rate limit. Verification multiplies the CPU time, and takes additional
	// memory for a page of completely decoded objects.
	Verify clock.PassiveClock
}

// New returns a function that works like [NewInformer], but decodes only the kept fields of pods
// and nodes. The cache must cover all namespaces. New also registers this package's metrics.
func New(to Connection, content Content, registry prometheus.Registerer) (NewInformerFunc, error) {
	m := newMetrics()
	if err := m.register(registry); err != nil {
		return nil, err
	}
	nodes, err := newNodeDecoder(content.Nodes)
	if err != nil {
		return nil, err
	}
	nodeSource, err := newSource(to, "nodes", "Node", m)
	if err != nil {
		return nil, err
	}
	nodeSource.newDecoder = func() decoder { return nodes }

	e := &encoder{}
	pods, err := newRecordMaker(e, content.Pods)
	if err != nil {
		return nil, err
	}
	podSource, err := newSource(to, "pods", "Pod", m)
	if err != nil {
		return nil, err
	}
	podSource.newDecoder = func() decoder { return newPodDecoder(pods) }
	if content.Listing != nil {
		podSource.listing = content.Listing
	}
	if content.Verify != nil {
		nodeSource.verify(to.Scheme, content.Verify, m, func(node runtime.Object) (runtime.Object, error) { return node, nil })
		podSource.verify(to.Scheme, content.Verify, m, func(pod runtime.Object) (runtime.Object, error) { return pods.toRecord(pod) })
		podSource.verifier.facts = content.Pods.Facts
	}
	return func(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		switch object.(type) {
		case *corev1.Pod:
			return newPodInformer(lw, resync, indexers, e, pods, podSource)
		case *corev1.Node:
			list := &pagedLister{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw), source: nodeSource, resource: "nodes", sizeFactor: 1}
			return nodeSource.verified(cache.NewSharedIndexInformer(list, object, resync, indexers))
		default:
			return cache.NewSharedIndexInformer(lw, object, resync, indexers)
		}
	}, nil
}

func newPodInformer(lw cache.ListerWatcher, resync time.Duration, indexers cache.Indexers, e *encoder, decoding *recordMaker, w *source) cache.SharedIndexInformer {
	list := &pagedLister{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw), source: w, resource: "pods", sizeFactor: 1}
	i := &informer{
		// The lister and its watch already return records, so the informer stores them unchanged.
		SharedIndexInformer: cache.NewSharedIndexInformerWithOptions(list, &record{}, cache.SharedIndexInformerOptions{
			ResyncPeriod: resync, Indexers: indexers, ObjectDescription: "*v1.Pod",
		}),
		restorer: newRestorer(), encoder: e, decoding: decoding, list: list,
	}
	i.convertBy(nil)
	return i
}

// informer is an informer that stores records and returns Pods.
type informer struct {
	cache.SharedIndexInformer
	*restorer
	encoder  *encoder
	decoding *recordMaker
	list     *pagedLister
}

// SetTransform sets the function that transforms each pod before it is stored. It must be called
// before the informer runs.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	// client-go's informer gets a transform without effect. The call is made only for its error,
	// which it returns if the informer is already running.
	if err := i.SharedIndexInformer.SetTransform(func(object any) (any, error) { return object, nil }); err != nil {
		return err
	}
	i.convertBy(transform)
	if s := i.list.source; s != nil {
		s.verifier.setTransform(transform)
	}
	return nil
}

func (i *informer) convertBy(transform cache.TransformFunc) {
	i.list.convert = func(object runtime.Object) (runtime.Object, error) {
		var in any = object
		if transform != nil {
			var err error
			if in, err = transform(object); err != nil {
				return nil, err
			}
		}
		pod, ok := in.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("%T in the cache of pods", in)
		}
		r, err := i.encoder.record(pod)
		if err == nil && i.decoding != nil && i.decoding.Facts != nil {
			// The transform drops the fields in factFields, so the facts are read from the original
			// pod.
			r.facts = i.encoder.share(r.common, i.decoding.Facts.Facts(object.(*corev1.Pod)))
		}
		return r, err
	}
	if i.decoding != nil {
		i.decoding.toRecord = i.list.convert
	}
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

// handler restores Pods from records, then calls the wrapped event handler.
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

// indexer restores Pods from a store that holds records.
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
