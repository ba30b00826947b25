// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// Proxy is the handler of the clients' requests.
type Proxy struct {
	rules    *fault.Book
	log      *log
	streams  streams
	requests atomic.Int64
	reverse  *httputil.ReverseProxy
}

// New returns a proxy in front of the API server that the configuration
// reaches, which does what the rules say and logs to out.
func New(config *rest.Config, rules *fault.Book, out io.Writer) (*Proxy, error) {
	upstream, err := newUpstream(config)
	if err != nil {
		return nil, err
	}
	p := &Proxy{rules: rules, log: &log{out: out}}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(upstream.url) },
		Transport:      upstream,
		FlushInterval:  -1,
		ModifyResponse: p.answered,
		// A client whose API server is gone sees a connection that breaks, not an
		// answer of somebody who is not an API server.
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			exchangeOf(r.Context()).failed(err)
			panic(http.ErrAbortHandler)
		},
		// What it would say is in our own log.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	return p, nil
}

// exchange is a request and what becomes of it.
type exchange struct {
	request fault.Request
	// trusted: the client has the proxy's own certificate.
	trusted bool

	mu    sync.Mutex
	entry entry
}

func (x *exchange) change(f func(*entry)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f(&x.entry)
}

func (x *exchange) blame(kind fault.Kind, rule string) {
	x.change(func(e *entry) { e.Fault, e.Rule = kind, rule })
}

func (x *exchange) failed(err error) {
	x.change(func(e *entry) { e.Error = err.Error() })
}

// ServeHTTP serves a request of a client.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	described, err := describe(r)
	x := &exchange{
		request: described,
		trusted: r.TLS != nil && len(r.TLS.VerifiedChains) > 0,
		entry:   newEntry(p.requests.Add(1), described, now),
	}
	out := &meter{ResponseWriter: w}
	// Also when the connection is broken off, which is a panic.
	defer x.change(func(e *entry) {
		e.Status, e.Bytes = out.status, out.bytes
		p.log.write(*e)
	})
	if err != nil {
		x.failed(err)
		panic(http.ErrAbortHandler)
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	due := p.rules.Request(described)
	if due == nil {
		p.reverse.ServeHTTP(out, r)
		return
	}
	if due.Learn == nil {
		x.blame(due.Fault.Kind, due.Name)
	}
	p.do(out, r, x, due)
}

// do does a fault to a request.
func (p *Proxy) do(w http.ResponseWriter, r *http.Request, x *exchange, due *fault.Due) {
	switch due.Fault.Kind {
	case fault.Error:
		answer(w, statusOf(x.request, due.Fault))
		return
	case fault.Delay:
		if pause(r.Context(), due) {
			p.reverse.ServeHTTP(w, r)
			return
		}
	case fault.Stale:
		p.stale(w, r, x, due)
		return
	case fault.Hang:
		// The server notices that a client has gone only after it has read all
		// that the client sent.
		_, _ = io.Copy(io.Discard, r.Body)
		pause(r.Context(), due)
	case fault.LoseAnswer, fault.HangAnswer:
		// What is committed must not depend on how long the client waits.
		p.reverse.ServeHTTP(&discard{header: http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
		if due.Fault.Kind == fault.HangAnswer {
			pause(r.Context(), due)
		}
	}
	panic(http.ErrAbortHandler)
}

// answered looks at the API server's answer before the client gets it.
func (p *Proxy) answered(response *http.Response) error {
	ctx := response.Request.Context()
	x := exchangeOf(ctx)
	x.change(func(e *entry) { e.Upstream = response.StatusCode })
	if watch := x.request.Verb == "watch" || x.request.Verb == fault.VerbWatchList; watch && response.StatusCode == http.StatusOK {
		response.Body = p.newStream(ctx, x, response.Body, encodingOf(response.Header.Get("Content-Type")))
	}
	return nil
}

// pause waits as long as a fault says, which is for ever if it says nothing, or
// until its rule is removed. It returns false if the client has gone before.
func pause(ctx context.Context, due *fault.Due) bool {
	var over <-chan time.Time
	if due.Fault.For > 0 {
		timer := time.NewTimer(time.Duration(due.Fault.For))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-due.Removed:
	case <-ctx.Done():
		return false
	}
	return true
}

// meter measures an answer.
type meter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Unwrap lets the server's own abilities through: flush and hijack.
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// WriteHeader passes the status on.
func (m *meter) WriteHeader(status int) {
	m.status = status
	m.ResponseWriter.WriteHeader(status)
}

// Write passes a part of the body on.
func (m *meter) Write(b []byte) (int, error) {
	n, err := m.ResponseWriter.Write(b)
	m.bytes += int64(n)
	return n, err
}

// discard is where an answer goes that is lost.
type discard struct{ header http.Header }

// Header returns headers that nobody reads.
func (d *discard) Header() http.Header { return d.header }

// WriteHeader does nothing.
func (d *discard) WriteHeader(int) {}

// Write does nothing.
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
