// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/podstartup"
)

// workers is how many tell at a time; each pod's story is told by one.
const workers = 4

// byReadiness indexes pods by the status of their condition Ready.
const byReadiness = "readiness"

// Watcher tells what happens to pods. What is called of it may be called by
// several goroutines at a time, but for one pod by one.
type Watcher struct {
	// Source lists and watches the pods. It must serve contexts.
	Source cache.ListerWatcher
	// Names are those of the pods to tell of; empty is all.
	Names map[string]bool
	// History: also tell how those came to be what they are that are there at
	// first, as far as they tell.
	History bool
	// Tell is given each transition. After an error it is given the same again,
	// three times at most, and then all that is not told of that pod by then is
	// dropped.
	Tell func(Transition) error

	// Began is told how many pods there are at first, and how many of them are
	// not ready.
	Began func(pods, unready int)
	// Lost is told once that the API server cannot be reached any more, and
	// Regained that it can.
	Lost     func(error)
	Regained func()
	// Dropped is told what was given up: so many transitions of the pod of that
	// key, namespace/name.
	Dropped func(key string, transitions int, err error)
}

// Run tells until the context ends, or nothing can be told at all, such as
// without the right to watch. It returns why, when all that was read is told and
// no goroutine of it is left.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	queue := newQueue()
	stories := &stories{all: map[string]*story{}}
	connection := &connection{
		source: cache.ToListerWatcherWithContext(w.Source), lost: w.Lost, regained: w.Regained, stop: stop,
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(connection.listerWatcher(), w.Source),
		ObjectType:    &corev1.Pod{},
		Handler:       w.handler(queue.Add, stories),
		Transform:     trimmed,
		Indexers:      cache.Indexers{byReadiness: readiness},
	})
	worker := &worker{queue: queue, store: store, stories: stories, tell: w.Tell, dropped: w.Dropped}

	var reading, telling sync.WaitGroup
	for range workers {
		telling.Go(worker.run)
	}
	reading.Go(func() { informer.RunWithContext(ctx) })
	reading.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.Began(w.count(store.(cache.Indexer)))
		}
	})
	<-ctx.Done()
	reading.Wait()
	// Workers empty a queue that is shut down: what was read is told.
	queue.ShutDown()
	telling.Wait()
	return context.Cause(ctx)
}

// handler puts what the informer reads into the stories, and the keys of the
// pods into the queue.
func (w *Watcher) handler(enqueue func(string), stories *stories) cache.ResourceEventHandler {
	add := func(s sighting) {
		if !w.chosen(s.pod) {
			return
		}
		key := cache.MetaObjectToName(s.pod).String()
		s.seen = time.Now()
		stories.add(key, s)
		enqueue(key)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			add(sighting{pod: o.(*corev1.Pod), first: initial && !w.History})
		},
		UpdateFunc: func(_, o any) { add(sighting{pod: o.(*corev1.Pod)}) },
		DeleteFunc: func(o any) {
			s := sighting{gone: true}
			switch o := o.(type) {
			case *corev1.Pod:
				s.pod = o
				if o.DeletionTimestamp == nil {
					s.reason = "at once, or it is no longer among those that are watched"
				}
			case cache.DeletedFinalStateUnknown:
				s.pod, s.reason = o.Obj.(*corev1.Pod), "while nobody was connected"
			}
			add(s)
		},
	}
}

func (w *Watcher) chosen(pod *corev1.Pod) bool { return len(w.Names) == 0 || w.Names[pod.Name] }

// count returns how many of the chosen pods there are, and how many of them are
// not ready.
func (w *Watcher) count(pods cache.Indexer) (all, unready int) {
	for _, status := range pods.ListIndexFuncValues(byReadiness) {
		list, err := pods.ByIndex(byReadiness, status)
		if err != nil {
			continue // there is such an index
		}
		for _, o := range list {
			if !w.chosen(o.(*corev1.Pod)) {
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
	if c := podstartup.Condition(o.(*corev1.Pod), corev1.PodReady); c != nil {
		return []string{string(c.Status)}, nil
	}
	return []string{string(corev1.ConditionUnknown)}, nil
}

// trimmed keeps what this package needs: the store of a large cluster's pods is
// then a fraction of what was sent.
func trimmed(o any) (any, error) {
	if pod, ok := o.(*corev1.Pod); ok {
		return trim(pod), nil
	}
	return o, nil
}
