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

// Entry is a line of the proxy's log. It describes a completed request, or a fault injected into an
// event of a watch that is still open.
type Entry struct {
	// Time is the arrival time of the request or event.
	Time time.Time `json:"time"`
	// ID is the number of the request. The entry of a watch event has the ID of the watch request.
	ID   int64  `json:"id"`
	Verb string `json:"verb"`
	// Resource has the form deployments.apps/status. For a non-resource request, Path is set
	// instead.
	Resource  string `json:"resource,omitempty"`
	Path      string `json:"path,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// ResourceVersion is the resourceVersion parameter of a list or watch, if any.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	UserAgent       string `json:"userAgent"`
	// Event is the type of the event that the fault was injected into, such as MODIFIED.
	Event string `json:"event,omitempty"`
	// Status is the status code sent to the client. It is omitted if no response was sent. Upstream
	// is the status code received from the API server. It is omitted if the request was not
	// forwarded or not answered.
	Status   int `json:"status,omitempty"`
	Upstream int `json:"upstream,omitempty"`
	// Events counts the events forwarded by a watch.
	Events int64 `json:"events,omitempty"`
	// Older is set if a list request was answered with an old list by a Stale rule with the field
	// Cached, and the old list differs from the current list.
	Older bool       `json:"older,omitempty"`
	Fault fault.Kind `json:"fault,omitempty"`
	Rule  string     `json:"rule,omitempty"`
	// Error is the error that ended the request, such as a failed connection to the API server.
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

// backlogLines is the maximum number of log lines waiting to be written.
const backlogLines = 10_000

// Backlog writes lines to a writer that may block, such as a pipe without a reader. Write never
// blocks: if too many lines are waiting, it drops further lines, and later adds a line with the
// number of dropped lines.
type Backlog struct {
	out     io.Writer
	lines   chan []byte
	dropped atomic.Int64
	stop    chan struct{}
	stopped chan struct{}
}

// NewBacklog returns a Backlog that writes to `out` until Close is called.
func NewBacklog(out io.Writer) *Backlog {
	b := &Backlog{out: out, lines: make(chan []byte, backlogLines), stop: make(chan struct{}), stopped: make(chan struct{})}
	go b.run()
	return b
}

// Write queues a line, or drops it if the queue is full.
func (b *Backlog) Write(line []byte) (int, error) {
	select {
	case b.lines <- bytes.Clone(line):
	default:
		b.dropped.Add(1)
	}
	return len(line), nil
}

// Close waits up to a second for the queued lines to be written.
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
	// A failure to write the log must not make requests fail.
	_, _ = b.out.Write(line)
	if n := b.dropped.Swap(0); n > 0 {
		_, _ = fmt.Fprintf(b.out, "{\"dropped\":%d}\n", n)
	}
}

// log writes each Entry as a line of JSON.
type log struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *log) write(e Entry) {
	e.Seconds = time.Since(e.Time).Seconds()
	line, err := json.Marshal(e)
	if err != nil {
		return // Encoding an Entry cannot fail.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A failure to write the log must not make requests fail.
	_, _ = l.out.Write(append(line, '\n'))
}
