// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
)

// streamWatch is a watch that decodes its events from the frames of a response body.
type streamWatch struct {
	*source
	objects decoder
	frames  io.ReadCloser
	events  chan watch.Event
	stop    context.CancelFunc
}

// shortest is the minimum duration of a watch that ends without an event and without an error, for
// example because a busy API server closes it. The reflector treats a shorter watch as an error and
// repeats the list, which would keep the API server busy.
const shortest = time.Second

// eventsAhead is the number of events that are decoded in advance while the reflector handles an
// event.
const eventsAhead = 16

// watch opens a watch. It returns an API server's error as an [apierrors.StatusError].
func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, stop := context.WithCancel(ctx)
	options.Watch = true
	frames, err := s.request(&options).Stream(ctx)
	if err != nil {
		stop()
		if utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) {
			cut := watch.NewFake()
			time.AfterFunc(shortest, cut.Stop)
			return cut, nil
		}
		return nil, err
	}
	w := &streamWatch{source: s, objects: s.newDecoder(), frames: frames, events: make(chan watch.Event, eventsAhead), stop: stop}
	go w.run(ctx)
	return w, nil
}

// ResultChan implements [watch.Interface].
func (s *streamWatch) ResultChan() <-chan watch.Event { return s.events }

// Stop implements [watch.Interface].
func (s *streamWatch) Stop() { s.stop() }

// run sends events until the response body ends or the watch is stopped.
func (s *streamWatch) run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	defer close(s.events)
	defer s.stop()
	// A blocking read can be interrupted only by closing the body.
	defer context.AfterFunc(ctx, func() { _ = s.frames.Close() })()
	defer func() { _ = s.frames.Close() }()

	in := bufio.NewReaderSize(s.frames, 32<<10)
	var memory wire.Buffer
	end := time.After(shortest)
	for first := true; ; first = false {
		e, err := s.next(ctx, in, &memory)
		if err != nil {
			if ctx.Err() != nil || !s.isFailure(ctx, err) {
				if first {
					select {
					case <-ctx.Done():
					case <-end:
					}
				}
				return
			}
			e = watch.Event{Type: watch.Error, Object: asStatus(err)}
		}
		select {
		case <-ctx.Done():
			return
		case s.events <- e:
		}
		if err != nil {
			return
		}
	}
}

// isFailure reports whether the error that ended a watch must be passed to the reflector as an
// event. It returns false if the connection was closed, or if the API server responded in another
// encoding, in which case client-go reads the next response.
func (s *streamWatch) isFailure(ctx context.Context, err error) bool {
	switch {
	case errors.Is(err, wire.ErrNotUnderstood):
		s.giveUp(ctx, err)
		return false
	case errors.Is(err, io.EOF):
		return false
	case errors.Is(err, io.ErrUnexpectedEOF):
		klog.FromContext(ctx).V(1).Info("A watch ended in the middle of an event", "resource", s.resource)
		return false
	default:
		return !utilnet.IsProbableEOF(err) && !utilnet.IsTimeout(err)
	}
}

// asStatus converts an error to a Status, as client-go's watches do for their own errors.
func asStatus(err error) runtime.Object {
	return apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding").
		AsObject(fmt.Errorf("unable to decode an event from the watch stream: %w", err))
}

// next reads and decodes the watch's next event.
func (s *streamWatch) next(ctx context.Context, in io.Reader, memory *wire.Buffer) (watch.Event, error) {
	frame, err := wire.ReadFrame(in, memory)
	if err != nil {
		return watch.Event{}, err
	}
	whole := s.verifier.clone(frame)
	e, err := s.decode(frame)
	if err != nil {
		return e, err
	}
	return s.verifier.event(ctx, whole, e)
}

// decode decodes a frame's event, and overwrites the frame.
func (s *streamWatch) decode(frame []byte) (watch.Event, error) {
	e, err := wire.ParseEvent(frame)
	if err != nil {
		return watch.Event{}, err
	}
	what := watch.EventType(e.What)
	switch {
	case what == watch.Error && e.Kind.Is("Status"):
		status := &metav1.Status{}
		if err := status.Unmarshal(e.Object); err != nil {
			return watch.Event{}, wire.NotUnderstood(err)
		}
		return watch.Event{Type: what, Object: status}, nil
	case !e.Kind.Is(s.kind):
		return watch.Event{}, wire.NotUnderstood(fmt.Errorf("an event %s with an object of %s", e.What, e.Kind))
	}
	var object runtime.Object
	switch what {
	case watch.Added, watch.Modified, watch.Deleted:
		object, err = s.objects.object(e.Object)
	case watch.Bookmark:
		object, err = s.objects.bookmark(e.Object)
	default:
		err = wire.NotUnderstood(fmt.Errorf("an event %s", what))
	}
	return watch.Event{Type: what, Object: object}, err
}
