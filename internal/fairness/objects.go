// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// objectsDesc describes the metric of [Objects].
var objectsDesc = prometheus.NewDesc("tidekeeper_namespace_cached_objects", fmt.Sprintf(
	"Objects of a namespace in the manager's cache, which take its memory, by namespace: for each of the %d namespaces with the highest values, and the sum of all others under the empty namespace.",
	Rows), []string{"namespace"}, nil)

// Objects counts the cached objects of each namespace for a metric. The size of a cached object is
// limited, but not the number of objects that users create.
type Objects struct {
	mu        sync.Mutex
	informers []cache.SharedIndexInformer
}

// Follow wraps an informer constructor, and counts the objects of the constructed informers. The
// informers must have the index by namespace, which controller-runtime adds.
func (o *Objects) Follow(create func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer) func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer {
	return func(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		informer := create(lw, object, resync, indexers)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.informers = append(o.informers, informer)
		return informer
	}
}

// running returns the informers that have not stopped. The informer of a kind stops when the kind's
// CRD is deleted, and a stopped informer must not be kept in memory.
func (o *Objects) running() []cache.SharedIndexInformer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.informers = slices.DeleteFunc(o.informers, cache.SharedIndexInformer.IsStopped)
	return slices.Clone(o.informers)
}

// Describe implements [prometheus.Collector].
func (o *Objects) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- objectsDesc }

// Collect implements [prometheus.Collector]. It reads only the keys of objects, because a list of
// all objects of a large cache takes megabytes of memory.
func (o *Objects) Collect(metrics chan<- prometheus.Metric) {
	counts := map[string]float64{}
	for _, informer := range o.running() {
		indexer := informer.GetIndexer()
		for _, namespace := range indexer.ListIndexFuncValues(cache.NamespaceIndex) {
			if namespace == "" {
				continue // Objects without a namespace belong to the cluster's administrators.
			}
			if keys, err := indexer.IndexKeys(cache.NamespaceIndex, namespace); err == nil && len(keys) > 0 {
				counts[namespace] += float64(len(keys))
			}
		}
	}
	Collect(metrics, objectsDesc, counts)
}
