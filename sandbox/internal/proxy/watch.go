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

// stream is a watch that passes through: the body of its answer, with what the
// rules do to its events. It reads the API server's events as they come, also
// while it holds them back, because an API server ends a watch whose reader is
// slow.
type stream struct {
	*io.PipeReader
	out      *io.PipeWriter
	exchange *exchange
	proxy    *Proxy
	upstream io.ReadCloser
	done     context.Context
	end      context.CancelFunc

	waiting queue
	passed  atomic.Int64
	frozen  atomic.Bool
}

func (p *Proxy) newStream(ctx context.Context, x *exchange, upstream io.ReadCloser, encoding *encoding) *stream {
	s := &stream{exchange: x, proxy: p, upstream: upstream, waiting: queue{more: make(chan struct{}, 1)}}
	s.PipeReader, s.out = io.Pipe()
	s.done, s.end = context.WithCancel(ctx)
	p.streams.add(s)
	go s.receive(newSplitter(upstream, encoding, x.request.Verb == fault.VerbWatchList))
	go s.deliver(encoding)
	return s
}

// Close ends the stream; the client is gone, or has been told the end.
func (s *stream) Close() error {
	s.proxy.streams.remove(s)
	s.exchange.change(func(e *entry) { e.Events = s.passed.Load() })
	s.end()
	_ = s.PipeReader.Close()
	return s.upstream.Close()
}

// cut breaks the stream off.
func (s *stream) cut(rule string) {
	s.exchange.blame(fault.CutWatch, rule)
	s.out.CloseWithError(errAborted)
	s.end()
}

func (s *stream) receive(frames *splitter) {
	for {
		f, err := frames.next()
		s.waiting.push(received{frame: f, err: err})
		if err != nil {
			return
		}
	}
}

// deliver passes on what was received, in its order, until the stream ends.
func (s *stream) deliver(encoding *encoding) {
	for {
		next, ok := s.waiting.pop(s.done)
		if !ok {
			return
		}
		for _, freeze := range s.proxy.rules.Freezes(s.exchange.request, next.event) {
			s.tell(next.frame, freeze)
			s.frozen.Store(true)
			if !pause(s.done, freeze) {
				return
			}
			s.frozen.Store(false)
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

// pass passes an event on, or does to it what a rule says. It returns whether
// the stream goes on.
func (s *stream) pass(f frame, encoding *encoding) bool {
	due := s.proxy.rules.Event(s.exchange.request, f.event)
	if due == nil {
		return s.write(f.bytes)
	}
	s.tell(f, due)
	switch due.Fault.Kind {
	case fault.DropEvent:
		return true
	case fault.DuplicateEvent:
		once := s.write(f.bytes)
		return once && s.write(f.bytes)
	case fault.DelayEvent:
		return pause(s.done, due) && s.write(f.bytes)
	case fault.ExpireWatch:
		s.exchange.blame(fault.ExpireWatch, due.Name)
		if raw, err := encoding.status(expired()); err == nil && s.write(encoding.join(raw)) {
			_ = s.out.Close()
		}
	case fault.CutWatch:
		s.cut(due.Name)
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

// tell logs what is done to an event.
func (s *stream) tell(f frame, due *fault.Due) {
	e := newEntry(s.exchange.entry.ID, s.exchange.request, time.Now())
	e.Event, e.Namespace, e.Name = f.event.Type, f.event.Namespace, f.event.Name
	e.Fault, e.Rule = due.Fault.Kind, due.Name
	s.proxy.log.write(e)
}

// received is a frame, or why there will be no more of them.
type received struct {
	frame
	err error
}

// queue holds what was received and not delivered; it has no limit.
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
	default: // It has been told already.
	}
}

// pop waits for an item; it returns false when the context ends before there
// is one.
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

// streams are the open ones.
type streams struct {
	mu   sync.Mutex
	open map[*stream]struct{}
}

func (s *streams) add(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*stream]struct{}{}
	}
	s.open[one] = struct{}{}
}

func (s *streams) remove(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, one)
}

// those returns the open streams of the requests that are meant.
func (s *streams) those(m fault.Match) []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	var meant []*stream
	for one := range s.open {
		if m.Matches(one.exchange.request) {
			meant = append(meant, one)
		}
	}
	return meant
}
