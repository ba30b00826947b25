// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// mostStreams is the maximum number of open streams, which send page updates to browser tabs. A
	// browser opens at most six connections per site for all tabs, and some connections must remain
	// for other requests.
	mostStreams = 4
	// coalesce is the minimum pause between sending two versions of a page. The next version
	// contains all changes during the pause.
	coalesce = 300 * time.Millisecond
	// longestPause is the maximum pause between two versions of a page. The pause is proportional
	// to the time spent on building the page, which on a busy machine is mostly a wait for a
	// processor.
	longestPause = 2 * time.Second
	// beat is the interval after which a stream sends a page even without changes, to update the
	// displayed times.
	beat = 5 * time.Second
	// writeLimit is the time limit for sending a version of a page to a client.
	writeLimit = 10 * time.Second
)

// streams lists the open streams, oldest first. A stream keeps the page in a browser tab up to
// date.
type streams struct {
	most int
	mu   sync.Mutex
	open []*stream
}

type stream struct{ cancel context.CancelCauseFunc }

type replaced struct{}

// Error implements error.
func (replaced) Error() string { return "another tab is kept up to date instead" }

// add registers a stream. If s.most streams are already open, it closes the oldest. The returned
// context is cancelled when the new stream is closed.
func (s *streams) add(ctx context.Context) (_ context.Context, remove func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	one := &stream{cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= s.most {
		s.open[0].cancel(replaced{})
		s.open = s.open[1:]
	}
	s.open = append(s.open, one)
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = slices.DeleteFunc(s.open, func(o *stream) bool { return o == one })
	}
}

// Streams returns the number of open streams.
func (s *Site) Streams() int {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	return len(s.streams.open)
}

// serveStream sends a page as a server-sent event, and sends it again after each change of the
// watched objects, until the client disconnects.
func (s *Site) serveStream(w http.ResponseWriter, r *http.Request) {
	path, query := strings.TrimPrefix(r.URL.Path, "/-/stream"), r.URL.Query()
	build, _, found := route(path)
	if !found {
		reply(w, nil, errNoPage)
		return
	}
	on, _, err := s.of(path, query)
	if err != nil {
		reply(w, nil, err)
		return
	}
	ctx, remove := s.streams.add(r.Context())
	defer remove()
	defer on.hold(build)()
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(event string, value any) error {
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
			return err
		}
		return control.Flush()
	}
	last := ""
	for {
		changed := on.nextChange()
		e, err := s.render(ctx, path, query, followed)
		if err != nil && ctx.Err() == nil {
			_ = send("gone", err.Error())
			return
		}
		if ctx.Err() != nil {
			break
		}
		same := e.HTML == last
		last = e.HTML
		if same {
			e.HTML = "" // Only the time or the reachability of the API server has changed, so omit the content.
		}
		if send("page", e) != nil {
			return
		}
		if !await(ctx, changed, min(max(coalesce, 4*e.work), longestPause)) {
			break
		}
	}
	if _, ok := context.Cause(ctx).(replaced); ok { //nolint:errorlint // the cause is not wrapped
		_ = send("replaced", context.Cause(ctx).Error())
	}
}

// await waits for the next change of the watched objects, but not longer than the interval beat. It
// then waits for the given pause. It returns false if ctx is done.
func await(ctx context.Context, changed <-chan struct{}, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-time.After(beat):
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
