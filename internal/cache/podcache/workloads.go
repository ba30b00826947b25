// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// Workload identifies a workload whose pods are queried.
type Workload struct {
	Namespace, Kind, Name string
	// UID is the UID of the object that controls the pods. If it is empty, the pods of any object
	// with this kind and name are selected.
	UID types.UID
}

// Workloads queries the pods of workloads in pod caches. It reads the records without building
// Pods, because a list of a large workload's Pods takes megabytes and many workers may query at the
// same time. The cost of a query depends on the number of the workload's pods, not on the other
// pods in its namespace.
type Workloads struct {
	mu        sync.Mutex
	informers []*followed
}

// followed is a pod informer whose records [Workloads] queries.
type followed struct {
	*informer
	// index adds the index byWorkload to the informer on its first call, which the first query
	// makes. Without queries, the index takes no memory.
	index func() error
}

// byWorkload is the name of the index that maps workloads to records.
const byWorkload = "workload"

// errNotSynced is the error of a query before the cache contains all pods.
var errNotSynced = errors.New("the cache of pods is not synced yet")

// Follow wraps an informer constructor, and makes the records of the constructed pod informers
// available to queries.
func (w *Workloads) Follow(create NewInformerFunc) NewInformerFunc {
	return func(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		created := create(lw, object, resync, indexers)
		if of, ok := created.(*informer); ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.informers = append(w.informers, &followed{of, sync.OnceValue(func() error {
				return of.SharedIndexInformer.AddIndexers(cache.Indexers{byWorkload: workloadOf})
			})})
		}
		return created
	}
}

// Watched reports whether there is a pod informer to query.
func (w *Workloads) Watched() bool { return len(w.all()) > 0 }

func (w *Workloads) all() []*followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.informers
}

// Oldest returns the creation time of a workload's oldest active pod, or the zero time if the
// workload has no active pods.
func (w *Workloads) Oldest(of Workload) (time.Time, error) {
	var oldest seconds
	found := false
	err := w.each(of, func(r *record) {
		if r.isActive() && (!found || r.created < oldest) {
			oldest, found = r.created, true
		}
	})
	if !found || err != nil {
		return time.Time{}, err
	}
	return oldest.time().Time, nil
}

// OnNodes returns a workload's pods on the nodes for which the given function returns true.
func (w *Workloads) OnNodes(of Workload, on func(node string) bool) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	err := w.each(of, func(r *record) {
		if on(r.node.Value()) {
			found = append(found, r.pod())
		}
	})
	return found, err
}

// each calls `do` with each record of a workload's pods.
func (w *Workloads) each(of Workload, do func(*record)) error {
	for _, i := range w.all() {
		if !i.HasSynced() {
			return errNotSynced
		}
		if err := i.index(); err != nil {
			return fmt.Errorf("index pods by workload: %w", err)
		}
		records, err := i.SharedIndexInformer.GetIndexer().ByIndex(byWorkload, workloadKey(of.Namespace, of.Kind, of.Name))
		if err != nil {
			return fmt.Errorf("find the pods of a workload: %w", err)
		}
		for _, object := range records {
			r := object.(*record)
			if kind, name := r.workload(); kind == of.Kind && name == of.Name && (of.UID == "" || r.controller().UID == of.UID) {
				do(r)
			}
		}
	}
	return nil
}

// workloadOf is the index function of the index byWorkload.
func workloadOf(object any) ([]string, error) {
	r, ok := object.(*record)
	if !ok {
		return nil, fmt.Errorf("%T in the cache of pods", object)
	}
	kind, name := r.workload()
	if name == "" {
		return nil, nil
	}
	return []string{workloadKey(r.namespace.Value(), kind, name)}, nil
}

func workloadKey(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

// workload returns the same result for a record as [pods.Workload] for its pod.
func (r *record) workload() (kind, name string) {
	return pods.WorkloadOf(r.controller(), r.shared.Labels)
}

// controller returns the owner reference of the object that controls the pod, or nil.
func (r *record) controller() *metav1.OwnerReference {
	owners := r.shared.OwnerReferences
	if r.owners != nil {
		owners = r.owners[:]
	}
	for i := range owners {
		if owners[i].Controller != nil && *owners[i].Controller {
			return &owners[i]
		}
	}
	return nil
}

// isActive returns the same result for a record as [pods.IsActive] for its pod.
func (r *record) isActive() bool { return r.deleted == nil && !pods.IsTerminal(r.shared) }
