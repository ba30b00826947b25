// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Changes returns a source that adds requests to a controller's queue when the cluster starts or
// stops serving an optional kind of the cache `store`. The function `requests` returns the requests
// to add for a kind. If `store` is not a [Cache] with optional kinds, the source adds no requests.
func Changes[request comparable](store cache.Cache, requests func(context.Context, schema.GroupVersionKind) []request) source.TypedSource[request] {
	return changes[request]{store, requests}
}

// changes implements the source returned by [Changes].
type changes[request comparable] struct {
	store    cache.Cache
	requests func(context.Context, schema.GroupVersionKind) []request
}

// String returns the name of the source for the controller's log.
func (changes[request]) String() string { return "kinds that begin or cease to be served" }

// Start implements [source.TypedSource].
func (s changes[request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	c, ok := s.store.(*Cache)
	if !ok {
		return nil
	}
	for _, k := range c.kinds {
		k.mu.Lock()
		k.onChange = append(k.onChange, func() {
			for _, r := range s.requests(ctx, k.gvk) {
				queue.Add(r)
			}
		})
		k.mu.Unlock()
	}
	return nil
}
