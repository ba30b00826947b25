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
	// Time is the time at which the request or the event arrived.
	Time time.Time `json:"time"`
	// ID is the number of the request. Entries for events of a watch have the ID of the watch.
	ID   int64  `json:"id"`
	Verb string `json:"verb"`
	// Resource has the form deployments.apps/status. Path replaces it for a request that is not for a
	// resource.
	Resource  string `json:"resource,omitempty"`
	Path      string `json:"path,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// ResourceVersion is the parameter of a list or watch; absent for a current list.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	UserAgent       string `json:"userAgent"`
	// Event is the type of the event that a fault was injected into.
	Event string `json:"event,omitempty"`
	// Status is the status code sent to the client, absent without a response. Upstream is the status code
	// from the API server, absent if the request was not forwarded or not answered.
	Status   int `json:"status,omitempty"`
	Upstream int `json:"upstream,omitempty"`
	// Events is the number of events that a watch has forwarded.
	Events int64 `json:"events,omitempty"`
	// Older is set if a list that a Stale rule answered from a cache differs from the current list.
	Older bool       `json:"older,omitempty"`
	Fault fault.Kind `json:"fault,omitempty"`
	Rule  string     `json:"rule,omitempty"`
	// Error is the error of the connection to the API server.
	Error string `json:"error,omitempty"`
	// Bytes is the size of the response body sent to the client.
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

// backlogLines is the maximum number of lines that wait to be written.
const backlogLines = 10_000

// Backlog writes lines to a writer that may block, such as a pipe without a reader. Write never blocks: if
// too many lines wait, it drops further lines, and adds a line with their number.
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

// Write queues a line.
func (b *Backlog) Write(line []byte) (int, error) {
	select {
	case b.lines <- bytes.Clone(line):
	default:
		b.dropped.Add(1)
	}
	return len(line), nil
}

// Close waits up to a second until the queued lines are written.
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
	// An error of the log must not fail requests.
	_, _ = b.out.Write(line)
	if n := b.dropped.Swap(0); n > 0 {
		_, _ = fmt.Fprintf(b.out, "{\"dropped\":%d}\n", n)
	}
}

// log writes entries as lines of JSON.
type log struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *log) write(e Entry) {
	e.Seconds = time.Since(e.Time).Seconds()
	line, err := json.Marshal(e)
	if err != nil {
		return // Entries can always be encoded.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// An error of the log must not fail requests.
	_, _ = l.out.Write(append(line, '\n'))
}
