// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// Entry is a line of the log: a request that has ended, or a fault that was
// injected into an event of a watch that goes on.
type Entry struct {
	// Time is when the request, or the event, arrived.
	Time time.Time `json:"time"`
	// ID counts the requests; the faults of a watch's events have its ID.
	ID   int64  `json:"id"`
	Verb string `json:"verb"`
	// Resource is written like deployments.apps/status; Path replaces
	// it when the request is not for a resource.
	Resource  string `json:"resource,omitempty"`
	Path      string `json:"path,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// ResourceVersion is the version that a list or a watch asks for. Absent: a list of the
	// present.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	UserAgent       string `json:"userAgent"`
	// Event is the type of the event that a fault was injected into.
	Event string `json:"event,omitempty"`
	// Status is the status code for the client, absent without an answer; Upstream is the status
	// code of the API server, absent if it was not asked or did not answer.
	Status   int `json:"status,omitempty"`
	Upstream int `json:"upstream,omitempty"`
	// Events is how many events a watch has passed on.
	Events int64 `json:"events,omitempty"`
	// Older: the list that a rule Stale answered from a cache differs from the current list.
	Older bool       `json:"older,omitempty"`
	Fault fault.Kind `json:"fault,omitempty"`
	Rule  string     `json:"rule,omitempty"`
	// Error is why the API server could not be asked.
	Error string `json:"error,omitempty"`
	// Bytes is how long the body of the answer was that the client got.
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

func entryOf(id int64, r fault.Request, now time.Time) Entry {
	e := Entry{Time: now, ID: id, Verb: r.Verb, Namespace: r.Namespace, Name: r.Name, ResourceVersion: r.ResourceVersion, UserAgent: r.UserAgent}
	if r.Resource == "" {
		e.Path = r.Path
	} else {
		e.Resource = resource(r)
	}
	return e
}

// backlogLines is how many lines wait for the reader of the log.
const backlogLines = 10_000

// Backlog writes lines to a writer that may block, such as a pipe that is not read.
// Write never blocks: when too many lines wait, more are dropped, and a line says
// how many.
type Backlog struct {
	out     io.Writer
	lines   chan []byte
	dropped atomic.Int64
	stop    chan struct{}
	stopped chan struct{}
}

// NewBacklog returns a backlog for a writer.
func NewBacklog(out io.Writer) *Backlog {
	b := &Backlog{out: out, lines: make(chan []byte, backlogLines), stop: make(chan struct{}), stopped: make(chan struct{})}
	go b.run()
	return b
}

// Write takes a line.
func (b *Backlog) Write(line []byte) (int, error) {
	select {
	case b.lines <- bytes.Clone(line):
	default:
		b.dropped.Add(1)
	}
	return len(line), nil
}

// Close gives the lines that wait a second to be written.
func (b *Backlog) Close() error {
	close(b.stop)
	select {
	case <-b.stopped:
	case <-time.After(time.Second):
	}
	return nil
}

func (b *Backlog) run() {
	defer close(b.stopped)
	for {
		select {
		case line := <-b.lines:
			b.put(line)
		case <-b.stop:
			for len(b.lines) > 0 {
				b.put(<-b.lines)
			}
			return
		}
	}
}

func (b *Backlog) put(line []byte) {
	// A log that cannot be written to must not fail requests.
	_, _ = b.out.Write(line)
	if n := b.dropped.Swap(0); n > 0 {
		_, _ = fmt.Fprintf(b.out, "{\"dropped\":%d}\n", n)
	}
}

// log writes entries, a line each.
type log struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *log) write(e Entry) {
	e.Seconds = time.Since(e.Time).Seconds()
	line, err := json.Marshal(e)
	if err != nil {
		return // An entry can always be encoded.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A log that cannot be written to must not fail requests.
	_, _ = l.out.Write(append(line, '\n'))
}
