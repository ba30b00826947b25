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
	// UID is the UID of the object that controls the pods; "" for any object of the workload.
	UID types.UID
}

// Workloads queries the pods of workloads in the records of the caches that it follows, without
// building a Pod for each record: a list of the Pods of a large workload takes megabytes, and
// many workers may query at once. The cost of a query depends on the pods of the workload, and
// not on the other pods in its namespace.
type Workloads struct {
	mu        sync.Mutex
	informers []*followed
}

// followed is an informer of pods that Workloads queries.
type followed struct {
	*informer
	// index adds the index byWorkload at the first query, so that a cluster without such
	// queries does not pay for it.
	index func() error
}

// byWorkload is the index of records by their workload.
const byWorkload = "workload"

// errNotSynced is returned while the cache does not have all pods yet.
var errNotSynced = errors.New("the cache of pods is not synced yet")

// Follow returns a function like create, and makes the pods in the created informers available
// to queries.
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

// Watched reports whether there is a cache of pods.
func (w *Workloads) Watched() bool { return len(w.all()) > 0 }

func (w *Workloads) all() []*followed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.informers
}

// Oldest returns the creation time of the oldest active pod of a workload; zero if there is
// none.
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

// OnNodes returns the pods of a workload on the nodes for which on returns true.
func (w *Workloads) OnNodes(of Workload, on func(node string) bool) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	err := w.each(of, func(r *record) {
		if on(r.node.Value()) {
			found = append(found, r.pod())
		}
	})
	return found, err
}

// each calls do with each record of a workload.
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

// workloadOf is the index function of byWorkload.
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

// workload is [pods.Workload] of a record.
func (r *record) workload() (kind, name string) {
	return pods.WorkloadOf(r.controller(), r.shared.Labels)
}

// controller returns the owner that controls the pod, or nil.
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

// isActive is [pods.IsActive] of a record.
func (r *record) isActive() bool { return r.deleted == nil && !pods.IsTerminal(r.shared) }
