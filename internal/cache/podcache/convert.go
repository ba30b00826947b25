// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// convertedWatch wraps a watch whose Pods were decoded by client-go. It replaces the Pod of each
// event with a record, the compact form in which the cache stores a pod.
type convertedWatch struct {
	pods    watch.Interface
	convert func(runtime.Object) (runtime.Object, error)
	events  chan watch.Event
	stop    context.CancelFunc
}

func convertEvents(ctx context.Context, pods watch.Interface, convert func(runtime.Object) (runtime.Object, error)) watch.Interface {
	ctx, stop := context.WithCancel(ctx)
	w := &convertedWatch{pods: pods, convert: convert, events: make(chan watch.Event), stop: stop}
	go w.run(ctx)
	return w
}

// ResultChan implements [watch.Interface].
func (w *convertedWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements [watch.Interface].
func (w *convertedWatch) Stop() {
	w.stop()
	w.pods.Stop()
}

func (w *convertedWatch) run(ctx context.Context) {
	defer close(w.events)
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.pods.ResultChan():
			if !ok {
				return
			}
			select {
			case <-ctx.Done():
				return
			case w.events <- w.event(e):
			}
		}
	}
}

func (w *convertedWatch) event(e watch.Event) watch.Event {
	pod, isPod := e.Object.(*corev1.Pod)
	switch {
	case e.Type == watch.Error:
	case e.Type == watch.Bookmark && isPod:
		e.Object = bookmarkOf(pod)
	default:
		r, err := w.convert(e.Object)
		if err != nil {
			return watch.Event{Type: watch.Error, Object: asStatus(err)}
		}
		e.Object = r
	}
	return e
}
