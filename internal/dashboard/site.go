// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// About identifies the cluster and the user.
type About struct {
	Context string `json:"context"`
	Server  string `json:"server"`
	User    string `json:"user"`
	// Namespace limits restarts and pods to a namespace; "" means all namespaces.
	Namespace string `json:"namespace,omitempty"`
}

// Cluster has the requests to a cluster besides watches: lookups and actions.
type Cluster struct {
	// Metrics returns the usage of nodes.
	Metrics func(ctx context.Context) view.NodeMetrics
	// Events returns the events about an object.
	Events func(ctx context.Context, about ObjectRef) ([]corev1.Event, error)
	// PodLike returns a copy of the pods of the workload TYPE/NAME; without a namespace, the namespace of the
	// context is used. lacks names parts of the copy that are not evaluated.
	PodLike func(ctx context.Context, namespace, like string) (pod *corev1.Pod, lacks string, err error)
	// Manager returns the state of the manager, as far as the user may read it.
	Manager func(ctx context.Context) view.Manager
	// Actions are the enabled actions; nil without --allow-actions.
	Actions Actions
}

// ObjectRef identifies an object.
type ObjectRef struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Options are the settings of a [Site].
type Options struct {
	About About
	// Token is the token for programs; "" for none. Tabs get their own tokens for the code of a link.
	Token string
	Now   func() time.Time
	Local *time.Location
	// OnGuess is called when the link is void after too many wrong codes; nil for nothing.
	OnGuess func()
}

// Site serves the pages of one or several clusters.
type Site struct {
	door    *door
	streams streams
	// pages are the pages of the only cluster, or the pages about all clusters.
	pages pages
	// fleet has the pages of each cluster; nil for a single cluster.
	fleet *fleet
}

// pages builds the pages of one cluster, or about all clusters.
type pages interface {
	// head returns the frame of the pages.
	head() *frame
	// build builds the page of a path.
	build(ctx context.Context, path string, query url.Values) (*page, *snapshot, error)
	// hold keeps the watches that a page needs running until release is called.
	hold(b builder) (release func())
	// nextChange returns a channel that is closed at the next change of any page.
	nextChange() <-chan struct{}
}

// NewSite returns a site for a single cluster.
func NewSite(member *Member, o Options) *Site {
	return newSite(member, nil, o)
}

// NewFleet returns a site for several clusters. The overview and the page of restarts show all clusters,
// unless the address names one; the other pages show a single cluster.
func NewFleet(members []*Member, o Options) *Site {
	f := newFleet(members, o)
	return newSite(f, f, o)
}

func newSite(of pages, f *fleet, o Options) *Site {
	d := newDoor(o.Token, o.Now)
	d.onGuess = o.OnGuess
	return &Site{door: d, streams: streams{most: mostStreams}, pages: of, fleet: f}
}

// Used is closed when a tab has used a link for the first time.
func (s *Site) Used() <-chan struct{} { return s.door.entered }

// NewLink returns an address that a tab is to open: it lets in one tab, once. Browsers do not send the
// part behind #. An earlier link that was not used is void.
func (s *Site) NewLink(at net.Addr) string { return "http://" + at.String() + "/#" + s.door.newCode() }

// Serve serves the site until the context ends. The log of the HTTP server is discarded, as it would contain
// text from clients.
func (s *Site) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler serves all requests. Shell, script and style contain no data; all other requests require the token.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/page/", s.door.withToken(s.servePage))
	mux.HandleFunc("GET /-/stream/", s.door.withToken(s.serveStream))
	mux.HandleFunc("POST /-/act", s.door.withToken(s.serveActionOf))
	mux.HandleFunc("POST /-/enter", s.door.serveEnter)
	mux.HandleFunc("POST /-/invite", s.door.withToken(s.door.serveInvite))
	mux.HandleFunc("GET /-/{asset}", serveAsset)
	mux.HandleFunc("GET /", s.serveShell)
	return guard(mux)
}

// isPage reports whether a path is the path of a page.
func isPage(path string) bool {
	_, _, found := route(path)
	return found
}

// serveShell serves the shell at all paths of pages: its script has the token and fetches the content. Paths
// that end with .json return data.
func (s *Site) serveShell(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ".json") {
		s.door.withToken(s.serveJSON)(w, r)
		return
	}
	if !isPage(r.URL.Path) {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(shell)
}

// envelope is the response with the content of a page, for its script.
type envelope struct {
	Title string `json:"title"`
	HTML  string `json:"html"`
	About About  `json:"about"`
	// Context is the context of the page's cluster, if the site shows several clusters.
	Context string `json:"context,omitempty"`
	// AsOf is the time of the shown objects, in the time zone of the terminal.
	AsOf string `json:"asOf"`
	// Lost explains why the API server is unreachable, or is "".
	Lost string `json:"lost,omitempty"`
	// Command is the kubectl command that prints the same data.
	Command string `json:"command"`
	// work is how long it took to build the page, without waiting.
	work time.Duration
}

var errNoPage = errors.New("there is no such page")

// of returns the pages for an address, and the query with the context on a site of several clusters.
func (s *Site) of(path string, query url.Values) (pages, url.Values, error) {
	if s.fleet == nil {
		return s.pages, query, nil
	}
	member, query, err := s.fleet.of(path, query)
	if member == nil {
		return s.fleet, query, err
	}
	return member, query, err
}

// render builds a page for the script.
func (s *Site) render(ctx context.Context, path string, query url.Values) (*envelope, error) {
	on, query, err := s.of(path, query)
	if err != nil {
		return nil, err
	}
	p, snapshot, err := on.build(ctx, path, query)
	if err != nil {
		return nil, err
	}
	frame, began := on.head(), time.Now()
	html, err := frame.render(p)
	if err != nil {
		return nil, err
	}
	if s.fleet != nil {
		choices, err := s.fleet.choices(frame.links.context, path, query)
		if err != nil {
			return nil, err
		}
		html = choices + html
	}
	e := &envelope{Title: p.title, HTML: html, About: frame.about, Context: frame.links.context, AsOf: frame.clock(snapshot.now), Command: frame.links.command(p.command), work: p.work + time.Since(began)}
	if snapshot.lost != "" {
		e.AsOf, e.Lost = frame.clock(snapshot.lostAt), snapshot.lost
	}
	return e, nil
}

func (s *Site) servePage(w http.ResponseWriter, r *http.Request) {
	e, err := s.render(r.Context(), strings.TrimPrefix(r.URL.Path, "/-/page"), r.URL.Query())
	reply(w, e, err)
}

func (s *Site) serveJSON(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, ".json")
	if path == "/overview" {
		path = "/"
	}
	on, query, err := s.of(path, r.URL.Query())
	if err != nil {
		reply(w, nil, err)
		return
	}
	p, _, err := on.build(r.Context(), path, query)
	if err != nil {
		reply(w, nil, err)
		return
	}
	reply(w, p.json, p.unknown)
}

// reply sends a value as JSON, or an error as a line of text.
func reply(w http.ResponseWriter, value any, err error) {
	unknown := &unknownError{}
	switch {
	case errors.As(err, &unknown):
		http.Error(w, err.Error(), unknown.status())
		return
	case errors.Is(err, errNoPage), errors.Is(err, errNotFound), errors.Is(err, errNoContext):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}
