// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/kube/informers"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/kube/reconnect"
)

// workers is the number of workers. They report different pods at the same time, but never the same
// pod.
const workers = 4

// byReadiness is the name of the index of pods by their readiness.
const byReadiness = "readiness"

// Watcher reports the transitions of pods. It may call its callbacks from several goroutines at the
// same time, but for each pod from only one goroutine at a time.
type Watcher struct {
	// Source lists and watches pods. Its methods must support contexts.
	Source cache.ListerWatcher
	// Events lists and watches the events about pods. If it is nil, events are not reported.
	Events cache.ListerWatcher
	// Names limits the watch to pods with the given names. If it is empty, there is no limit.
	Names map[string]bool
	// History makes the watcher also report earlier transitions of the pods that exist at the
	// start, as far as the pods and their events show them.
	History bool
	// OnTransition is called with each transition. If it returns an error, it is called with the
	// same transition again, up to three times. After that, all pending transitions of the pod are
	// dropped.
	OnTransition func(Transition) error

	// OnStart is called with the number of pods that exist at the start, and the number of these
	// pods that are not ready.
	OnStart func(pods, unready int)
	// OnLost is called once when the API server becomes unreachable. OnRegained is called when it
	// can be reached again.
	OnLost     func(error)
	OnRegained func()
	// OnNoEvents is called once if events cannot be read. Pods are still watched in this case.
	OnNoEvents func(error)
	// OnDropped is called after transitions of a pod were dropped, with the pod's key
	// namespace/name, the number of dropped transitions, and the last error of OnTransition.
	OnDropped func(key string, transitions int, err error)
}

// Run watches pods until the context ends or watching is impossible, for instance because of
// missing rights, and returns the reason. Before it returns, all observed transitions have been
// reported, and its goroutines have ended.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	queue, backlogs := newQueue(), newBacklogs()
	connection := &reconnect.Connection{
		Source: cache.ToListerWatcherWithContext(w.Source), OnLost: w.OnLost, OnRegained: w.OnRegained, Stop: stop,
	}
	feed := newEventFeed()
	handler := w.handler(queue.Add, backlogs, feed)
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(connection.ListerWatcher(), w.Source),
		ObjectType:    &corev1.Pod{},
		Handler:       handler,
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
			w.runEvents(ctx, feed)
		}
	})
	<-ctx.Done()
	reading.Wait()
	// The workers empty the queue after it has been shut down, so that all observed transitions are
	// reported.
	queue.ShutDown()
	reporting.Wait()
	return context.Cause(ctx)
}

// runEvents reads events until the context ends or events cannot be read.
func (w *Watcher) runEvents(ctx context.Context, feed *eventFeed) {
	if w.Events == nil {
		return
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	connection := &reconnect.Connection{
		Source: cache.ToListerWatcherWithContext(w.Events),
		// Do nothing here, because the watch of pods already reports a lost connection.
		OnLost: func(error) {}, OnRegained: func() {},
		Stop: func(err error) {
			w.OnNoEvents(err)
			stop(err)
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(connection.ListerWatcher(), w.Events),
		ObjectType:    &corev1.Event{},
		Transform:     trimEvent,
		Handler: informers.Handler[*corev1.Event]{
			Add: func(e *corev1.Event, initial bool) {
				if w.selects(e.InvolvedObject.Name) {
					feed.add(e, initial)
				}
			},
			Update: func(old, e *corev1.Event) {
				// After a reconnect, the list is repeated and contains events that were already
				// reported.
				if w.selects(e.InvolvedObject.Name) && old.ResourceVersion != e.ResourceVersion {
					feed.add(e, false)
				}
			},
		},
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		feed.listed()
	}
	running.Wait()
}

// handler returns the event handler of the pod informer. It appends observations to the backlogs
// and enqueues the pods' keys.
func (w *Watcher) handler(enqueue func(string), backlogs *backlogs, feed *eventFeed) cache.ResourceEventHandler {
	add := func(o observation) {
		if !w.selects(o.pod.Name) {
			return
		}
		key := cache.MetaObjectToName(o.pod).String()
		o.seen = time.Now()
		backlogs.add(key, o)
		enqueue(key)
		switch {
		case o.event != nil:
		case o.gone:
			feed.forget(o.pod)
		default:
			feed.keep(o.pod, o.initial)
		}
	}
	feed.emit = func(e *corev1.Event, pod *corev1.Pod) { add(observation{pod: pod, event: e}) }
	return informers.Handler[*corev1.Pod]{
		Add: func(pod *corev1.Pod, initial bool) {
			add(observation{pod: pod, initial: initial && !w.History})
		},
		Update: func(old, pod *corev1.Pod) {
			if old.UID != pod.UID {
				feed.forget(old)
			}
			add(observation{pod: pod})
		},
		Delete: func(pod *corev1.Pod, missed bool) {
			o := observation{gone: true, pod: pod}
			switch {
			case missed:
				o.reason = "while the connection was lost"
			case pod.DeletionTimestamp == nil:
				o.reason = "immediately, or the pod no longer matches the selector"
			}
			add(o)
		},
	}
}

func (w *Watcher) selects(pod string) bool { return len(w.Names) == 0 || w.Names[pod] }

// count returns the number of selected pods, and the number of selected pods that are not ready.
func (w *Watcher) count(store cache.Indexer) (all, unready int) {
	for _, status := range store.ListIndexFuncValues(byReadiness) {
		list, err := store.ByIndex(byReadiness, status)
		if err != nil {
			continue // The index exists.
		}
		for _, o := range list {
			if !w.selects(o.(*corev1.Pod).Name) {
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

// trimObject is the informer's transform of pods. It keeps only the fields that this package reads,
// a fraction of the data that the API server sends.
func trimObject(o any) (any, error) {
	if pod, ok := o.(*corev1.Pod); ok {
		return trim(pod), nil
	}
	return o, nil
}
