// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/informers"
	"tidekeeper.dev/tidekeeper/internal/pods"
	"tidekeeper.dev/tidekeeper/internal/reconnect"
)

// workers is how many pods are reported at the same time. Each pod is handled by one
// worker at a time.
const workers = 4

// byReadiness indexes pods by the status of their condition Ready.
const byReadiness = "readiness"

// Watcher reports what happens to pods. Several goroutines may call its functions at
// the same time, but only one for each pod.
type Watcher struct {
	// Source lists and watches the pods. It must accept contexts.
	Source cache.ListerWatcher
	// Names limits the watch to the pods of these names, unless it is empty.
	Names map[string]bool
	// History: also report how the pods that exist at the start got to their state, as
	// far as they show it.
	History bool
	// OnTransition is called with each transition. After an error it is called with the
	// same one again, at most three times; then all that is pending for that pod is
	// dropped.
	OnTransition func(Transition) error

	// OnStart is called with the number of pods that exist at the start, and how many of
	// them are not ready.
	OnStart func(pods, unready int)
	// OnLost is called once when the API server becomes unreachable, and OnRegained when
	// it is reachable again.
	OnLost     func(error)
	OnRegained func()
	// OnDropped is called with the key, namespace/name, of a pod whose transitions were
	// given up, and how many these are.
	OnDropped func(key string, transitions int, err error)
}

// Run watches until the context ends, or it cannot watch at all, for instance because
// it lacks the right to. It returns why, once all that it has read is reported and all
// its goroutines have ended.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	queue, backlogs := newQueue(), newBacklogs()
	connection := &reconnect.Connection{
		Source: cache.ToListerWatcherWithContext(w.Source), OnLost: w.OnLost, OnRegained: w.OnRegained, Stop: stop,
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(connection.ListerWatcher(), w.Source),
		ObjectType:    &corev1.Pod{},
		Handler:       w.handler(queue.Add, backlogs),
		Transform:     trimObject,
		Indexers:      cache.Indexers{byReadiness: readiness},
	})
	worker := &worker{queue: queue, backlogs: backlogs, report: w.OnTransition, dropped: w.OnDropped}

	var reading, reporting sync.WaitGroup
	for range workers {
		reporting.Go(worker.run)
	}
	reading.Go(func() { informer.RunWithContext(ctx) })
	reading.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.OnStart(w.count(store.(cache.Indexer)))
		}
	})
	<-ctx.Done()
	reading.Wait()
	// Workers empty a queue that is shut down, so all that was read is reported.
	queue.ShutDown()
	reporting.Wait()
	return context.Cause(ctx)
}

// handler returns the event handler that appends what the informer reads to the
// backlogs, and adds the keys of the pods to the queue.
func (w *Watcher) handler(enqueue func(string), backlogs *backlogs) cache.ResourceEventHandler {
	add := func(o observation) {
		if !w.selects(o.pod) {
			return
		}
		key := cache.MetaObjectToName(o.pod).String()
		o.seen = time.Now()
		backlogs.add(key, o)
		enqueue(key)
	}
	return informers.Handler[*corev1.Pod]{
		Add: func(pod *corev1.Pod, initial bool) {
			add(observation{pod: pod, initial: initial && !w.History})
		},
		Update: func(_, pod *corev1.Pod) { add(observation{pod: pod}) },
		Delete: func(pod *corev1.Pod, missed bool) {
			o := observation{gone: true, pod: pod}
			switch {
			case missed:
				o.reason = "while the connection was lost"
			case pod.DeletionTimestamp == nil:
				o.reason = "immediately, or it no longer matches what is watched"
			}
			add(o)
		},
	}
}

func (w *Watcher) selects(pod *corev1.Pod) bool { return len(w.Names) == 0 || w.Names[pod.Name] }

// count returns the number of selected pods, and how many of them are not ready.
func (w *Watcher) count(store cache.Indexer) (all, unready int) {
	for _, status := range store.ListIndexFuncValues(byReadiness) {
		list, err := store.ByIndex(byReadiness, status)
		if err != nil {
			continue // The index exists.
		}
		for _, o := range list {
			if !w.selects(o.(*corev1.Pod)) {
				continue
			}
			all++
			if status != string(corev1.ConditionTrue) {
				unready++
			}
		}
	}
	return all, unready
}

func readiness(o any) ([]string, error) {
	if c := pods.Condition(o.(*corev1.Pod), corev1.PodReady); c != nil {
		return []string{string(c.Status)}, nil
	}
	return []string{string(corev1.ConditionUnknown)}, nil
}

// trimObject keeps the fields that this package needs, a fraction of what the API
// server sends.
func trimObject(o any) (any, error) {
	if pod, ok := o.(*corev1.Pod); ok {
		return trim(pod), nil
	}
	return o, nil
}
