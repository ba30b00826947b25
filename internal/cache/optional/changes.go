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

// Changes returns a source that adds the requests returned for a kind to the queue when the
// cluster begins or ceases to serve that kind. If store has no optional kinds, the source adds
// none.
func Changes[request comparable](store cache.Cache, requests func(context.Context, schema.GroupVersionKind) []request) source.TypedSource[request] {
	return source.TypedFunc[request](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
		c, ok := store.(*Cache)
		if !ok {
			return nil
		}
		for _, k := range c.kinds {
			k.mu.Lock()
			k.onChange = append(k.onChange, func() {
				for _, r := range requests(ctx, k.gvk) {
					queue.Add(r)
				}
			})
			k.mu.Unlock()
		}
		return nil
	})
}
