// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// stream is a watch's response body, with faults injected into its events. While a fault holds back
// events, the stream continues to read events from the API server, because an API server closes a
// watch whose client is slow.
type stream struct {
	*io.PipeReader
	out      *io.PipeWriter
	exchange *exchange
	streams  *streams
	upstream io.ReadCloser
	done     context.Context
	end      context.CancelFunc

	waiting queue
	passed  atomic.Int64
	frozen  atomic.Bool
}

// start starts to forward the events of a watch from the API server's response body, `upstream`.
// The client reads the returned stream.
func (t *streams) start(ctx context.Context, x *exchange, upstream io.ReadCloser, encoding *encoding) *stream {
	s := &stream{exchange: x, streams: t, upstream: upstream, waiting: queue{more: make(chan struct{}, 1)}}
	s.PipeReader, s.out = io.Pipe()
	s.done, s.end = context.WithCancel(ctx)
	// Reads from the pipe ignore the context, so close the pipe when the context is done. The HTTP
	// server then detects that the client has disconnected, closes the stream and logs it, even
	// while deliver is waiting.
	context.AfterFunc(s.done, func() { s.out.CloseWithError(context.Cause(s.done)) })
	t.add(s)
	go s.receive(newSplitter(upstream, encoding, x.request.Verb == fault.VerbWatchList))
	go s.deliver(encoding)
	return s
}

// Close ends the stream. The reverse proxy calls Close after the client has disconnected, or after
// the complete stream has been copied.
func (s *stream) Close() error {
	s.streams.remove(s)
	s.exchange.change(func(e *Entry) { e.Events = s.passed.Load() })
	s.end()
	_ = s.PipeReader.Close()
	return s.upstream.Close()
}

// cut aborts the stream of a watch. `rule` is the name of the responsible rule, or "" if no rule is
// responsible.
func (s *stream) cut(rule string) {
	s.exchange.blame(fault.CutWatch, rule)
	s.out.CloseWithError(errAborted)
	s.end()
}

func (s *stream) receive(frames *splitter) {
	var objects history
	for {
		f, err := frames.next()
		if err == nil {
			if s.streams.rules.NeedsChange(s.exchange.request) {
				f.event.Change = objects.change(f)
			}
			f.object = nil
			for _, mark := range s.streams.rules.Mark(s.exchange.request, f.event) {
				s.logFault(f, mark)
			}
		}
		s.waiting.push(received{frame: f, err: err})
		if err != nil {
			return
		}
	}
}

// deliver forwards the received events in order until the stream ends.
func (s *stream) deliver(encoding *encoding) {
	for {
		next, ok := s.waiting.pop(s.done)
		if !ok {
			return
		}
		for _, freeze := range s.streams.rules.Freezes(s.exchange.request, next.event) {
			s.logFault(next.frame, freeze)
			s.frozen.Store(true)
			thawed := pause(s.done, freeze)
			s.frozen.Store(false)
			if !thawed {
				return
			}
		}
		if next.err != nil {
			s.out.CloseWithError(next.err)
			return
		}
		if !s.pass(next.frame, encoding) {
			return
		}
	}
}

// pass forwards an event or injects a fault. It returns true if the stream continues.
func (s *stream) pass(f frame, encoding *encoding) bool {
	action := s.streams.rules.Event(s.exchange.request, f.event)
	if action == nil {
		return s.write(f.bytes)
	}
	s.logFault(f, action)
	switch action.Fault.Kind {
	case fault.DropEvent:
		return true
	case fault.DuplicateEvent:
		once := s.write(f.bytes)
		return once && s.write(f.bytes)
	case fault.DelayEvent:
		return pause(s.done, action) && s.write(f.bytes)
	case fault.ExpireWatch:
		if encoding == nil {
			// An ERROR event cannot be encoded if the stream's encoding is unknown, so abort the
			// stream.
			s.cut(action.Rule)
			return false
		}
		s.exchange.blame(fault.ExpireWatch, action.Rule)
		if raw, err := encoding.status(expired()); err == nil && s.write(encoding.join(raw)) {
			_ = s.out.Close()
		}
	case fault.CutWatch:
		s.cut(action.Rule)
	}
	return false
}

func (s *stream) write(frame []byte) bool {
	if _, err := s.out.Write(frame); err != nil {
		return false
	}
	s.passed.Add(1)
	return true
}

// logFault logs a fault injected into an event.
func (s *stream) logFault(f frame, action *fault.Action) {
	e := entryOf(s.exchange.entry.ID, s.exchange.request, time.Now())
	e.Event, e.Namespace, e.Name = f.event.Type, f.event.Namespace, f.event.Name
	e.Fault, e.Rule = action.Fault.Kind, action.Rule
	s.streams.log.write(e)
}

// received is a frame, or the error that ends the stream.
type received struct {
	frame
	err error
}

// queue is an unbounded queue of events that were received but not delivered yet.
type queue struct {
	mu    sync.Mutex
	items []received
	more  chan struct{}
}

func (q *queue) push(item received) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default: // The reader has already been signaled.
	}
}

// pop waits for the next item. It returns false if the context is done first.
func (q *queue) pop(ctx context.Context) (received, bool) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			item := q.items[0]
			q.items = q.items[1:]
			q.mu.Unlock()
			return item, true
		}
		q.mu.Unlock()
		select {
		case <-q.more:
		case <-ctx.Done():
			return received{}, false
		}
	}
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// streams is the set of open watches, together with the rules for their events.
type streams struct {
	rules *fault.RuleSet
	log   *log

	mu   sync.Mutex
	open map[*stream]struct{}
}

func (t *streams) add(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[s] = struct{}{}
}

func (t *streams) remove(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, s)
}

// matching returns the open streams whose requests match `m`.
func (t *streams) matching(m fault.Match) []*stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	var matching []*stream
	for s := range t.open {
		if m.Matches(s.exchange.request) {
			matching = append(matching, s)
		}
	}
	return matching
}
