// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
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

// Proxy forwards clients' requests to an API server and injects the faults of its rules.
type Proxy struct {
	rules    *fault.RuleSet
	catalog  *catalog
	log      *log
	streams  *streams
	requests atomic.Int64
	reverse  *httputil.ReverseProxy
	// crash kills the client and restarts it after the given time. It is nil if the proxy cannot
	// restart its client.
	crash func(down time.Duration)
	// writeTimeout is the maximum time for a client to read a part of its response.
	writeTimeout time.Duration
	// detachedTimeout is the maximum time for the API server to answer a request whose client no
	// longer waits.
	detachedTimeout time.Duration
}

// errSlow is logged for a connection that is closed because the client does not read its response.
var errSlow = errors.New("the client reads nothing")

// New returns a proxy for the API server in `config`. It injects the faults of `rules`, and logs to
// `out`.
func New(config *rest.Config, rules *fault.RuleSet, out io.Writer) (*Proxy, error) {
	upstream, err := newUpstream(config)
	if err != nil {
		return nil, err
	}
	// The timeouts are similar to an API server's, which closes watches whose client does not read,
	// and limits other requests to a minute.
	p := &Proxy{rules: rules, catalog: newCatalog(config), log: &log{out: out}, writeTimeout: 30 * time.Second, detachedTimeout: 90 * time.Second}
	p.streams = &streams{rules: rules, log: p.log, open: map[*stream]struct{}{}}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream.url)
			if exchangeOf(r.In.Context()).request.IsWatch() {
				// If the client accepts compression, API servers compress watches from Kubernetes
				// 1.37 on. The proxy must be able to decode each event.
				r.Out.Header.Del("Accept-Encoding")
			}
		},
		Transport:      upstream,
		FlushInterval:  -1,
		ModifyResponse: p.answered,
		// If the API server is unreachable, break the client's connection instead of sending a
		// response that no API server would send.
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			exchangeOf(r.Context()).failed(err)
			panic(http.ErrAbortHandler)
		},
		// Discard the errors of the reverse proxy, which are already in the proxy's own log.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	return p, nil
}

// exchange is a client's request and its log entry.
type exchange struct {
	request fault.Request
	// trusted is set if the client has presented the client certificate in the proxy's kubeconfig.
	trusted bool

	mu    sync.Mutex
	entry Entry
}

func (x *exchange) change(f func(*Entry)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f(&x.entry)
}

func (x *exchange) blame(kind fault.Kind, rule string) {
	x.change(func(e *Entry) { e.Fault, e.Rule = kind, rule })
}

func (x *exchange) failed(err error) {
	x.change(func(e *Entry) { e.Error = err.Error() })
}

// ServeHTTP handles a client's request: it forwards the request, or injects the fault of a matching
// rule. It logs the request when the request ends.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	described, body, err := describe(r)
	x := &exchange{
		request: described,
		trusted: r.TLS != nil && len(r.TLS.VerifiedChains) > 0,
		entry:   entryOf(p.requests.Add(1), described, now),
	}
	out := &meter{ResponseWriter: w, writeTimeout: p.writeTimeout, slow: func() { x.failed(errSlow) }}
	// Write the log entry in a deferred call, because the connection may be aborted with a panic.
	defer x.change(func(e *Entry) {
		e.Status, e.Bytes = out.status, out.bytes
		p.log.write(*e)
	})
	if err != nil {
		x.failed(err)
		panic(http.ErrAbortHandler)
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if p.rules.NeedsChange(described) {
		described.Change = p.reader().change(r, x, body, p.rules.NeedsOld)
	}
	action := p.rules.Request(described)
	if action == nil {
		p.reverse.ServeHTTP(out, r)
		return
	}
	if action.SetResourceVersion == nil {
		x.blame(action.Fault.Kind, action.Rule)
	}
	p.inject(out, r, x, action)
}

// reader returns a reader that sends the proxy's own reads to the API server with the client's
// credentials.
func (p *Proxy) reader() reader { return reader{api: p.reverse} }

// Control returns the control API's HTTP handler.
func (p *Proxy) Control() http.Handler {
	return (&controlAPI{rules: p.rules, catalog: p.catalog, streams: p.streams, crashes: p.crash != nil}).handler()
}

// inject handles a request as the fault of a rule specifies: it answers the request, or aborts the
// connection.
func (p *Proxy) inject(w http.ResponseWriter, r *http.Request, x *exchange, action *fault.Action) {
	switch action.Fault.Kind {
	case fault.Error:
		answer(w, statusOf(x.request, action.Fault))
		return
	case fault.Delay:
		if pause(r.Context(), action) {
			p.reverse.ServeHTTP(w, r)
			return
		}
	case fault.Stale:
		p.reader().stale(w, r, x, action)
		return
	case fault.Hang:
		// The HTTP server notices a closed connection only once the body has been read.
		_, _ = io.Copy(io.Discard, r.Body)
		pause(r.Context(), action)
	case fault.Crash:
		if action.Fault.At == fault.After {
			p.detached(r)
		}
		p.crash(time.Duration(action.Fault.For))
	case fault.LoseAnswer, fault.HangAnswer:
		p.detached(r)
		switch {
		case action.Fault.Kind == fault.HangAnswer:
			pause(r.Context(), action)
		case action.Fault.Code != 0:
			answer(w, statusOf(x.request, action.Fault))
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// detached forwards a request and discards the response. The request is not canceled when the
// client disconnects, so that a write is committed in any case.
func (p *Proxy) detached(r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), p.detachedTimeout)
	defer cancel()
	p.reverse.ServeHTTP(&discard{header: http.Header{}}, r.WithContext(ctx))
}

// answered records the API server's response status in the log entry. It wraps the body of a watch
// in a stream, which injects faults into the watch's events.
func (p *Proxy) answered(response *http.Response) error {
	ctx := response.Request.Context()
	x := exchangeOf(ctx)
	x.change(func(e *Entry) { e.Upstream = response.StatusCode })
	if x.request.IsWatch() && response.StatusCode == http.StatusOK {
		response.Body = p.streams.start(ctx, x, response.Body, encodingOf(response.Header.Get("Content-Type")))
	}
	return nil
}

// pause waits for a fault's duration, or until its rule is removed. It returns false if the client
// disconnects first.
func pause(ctx context.Context, action *fault.Action) bool {
	var over <-chan time.Time
	if action.Fault.For > 0 {
		timer := time.NewTimer(time.Duration(action.Fault.For))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-action.Removed:
	case <-ctx.Done():
		return false
	}
	return true
}

// meter records a response's status and size, and aborts the response if the client does not read
// it.
type meter struct {
	http.ResponseWriter
	status       int
	bytes        int64
	writeTimeout time.Duration
	slow         func()
}

// withDeadline calls `send`, and closes the connection if the client does not read within
// writeTimeout.
func (m *meter) withDeadline(send func()) {
	timer := time.AfterFunc(m.writeTimeout, func() {
		m.slow()
		_ = http.NewResponseController(m.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
	})
	defer timer.Stop()
	send()
}

// FlushError flushes buffered bytes to the client.
func (m *meter) FlushError() (err error) {
	m.withDeadline(func() { err = http.NewResponseController(m.ResponseWriter).Flush() })
	return err
}

// Unwrap gives http.ResponseController access to the HTTP server's own ResponseWriter, for example
// to hijack the connection.
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// WriteHeader writes the response's status code.
func (m *meter) WriteHeader(status int) {
	m.status = status
	m.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the response body.
func (m *meter) Write(b []byte) (n int, err error) {
	m.withDeadline(func() { n, err = m.ResponseWriter.Write(b) })
	m.bytes += int64(n)
	return n, err
}

// discard is a ResponseWriter that discards the response.
type discard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (d *discard) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *discard) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
