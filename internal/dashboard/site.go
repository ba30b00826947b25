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

// About identifies a cluster and the user.
type About struct {
	Context string `json:"context"`
	Server  string `json:"server"`
	User    string `json:"user"`
	// Namespace is the only namespace whose restarts and pods are shown; "" means all namespaces.
	Namespace string `json:"namespace,omitempty"`
}

// Cluster provides the lookups and actions that pages need in addition to the watches.
type Cluster struct {
	// Metrics returns the measured usage of nodes.
	Metrics func(ctx context.Context) view.NodeMetrics
	// Events returns the Kubernetes events about an object.
	Events func(ctx context.Context, about ObjectRef) ([]corev1.Event, error)
	// PodLike returns a pod with the properties of the pods of the workload `like`, written
	// TYPE/NAME. An empty namespace means the context's namespace. lacks explains which defaults
	// the API server could not set; "" if it set all.
	PodLike func(ctx context.Context, namespace, like string) (pod *corev1.Pod, lacks string, err error)
	// Manager returns the state of Tidekeeper's manager, or the zero Manager if the leader election
	// leases cannot be read.
	Manager func(ctx context.Context) view.Manager
	// Drain returns the pods that block draining the given node now. The parameter others lists all
	// nodes.
	Drain func(ctx context.Context, node *corev1.Node, others []*corev1.Node, now time.Time) Drain
	// Actions performs the actions of the pages' buttons. It is nil if the dashboard runs without
	// --allow-actions.
	Actions Actions
}

// ObjectRef identifies an object that has events.
type ObjectRef struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Options configures a [Site].
type Options struct {
	About About
	// Token authenticates programs; "" means that programs have no access. Browser tabs do not use
	// it. They get tokens of their own in exchange for the code in a link.
	Token string
	Now   func() time.Time
	Local *time.Location
	// OnGuess is called when the link becomes invalid because of too many wrong codes and tickets.
	// It may be nil.
	OnGuess func()
}

// Site serves the pages about one or several clusters.
type Site struct {
	door    *door
	streams streams
	// pages builds the pages about the only cluster, or about all clusters.
	pages pages
	// fleet builds the pages of a dashboard for several clusters. It is nil if there is a single
	// cluster.
	fleet *fleet
}

// pages builds the pages about one cluster, or about all clusters of the dashboard.
type pages interface {
	// head returns the pages' common settings.
	head() *frame
	// build builds the page at a path.
	build(ctx context.Context, path string, query url.Values, h haste) (*page, *snapshot, error)
	// hold keeps the watches for a page running until release is called.
	hold(b builder) (release func())
	// nextChange returns a channel that is closed at the next change of the watched objects.
	nextChange() <-chan struct{}
}

// NewSite returns a [Site] for a single cluster.
func NewSite(member *Member, o Options) *Site {
	return newSite(member, nil, o)
}

// NewFleet returns a [Site] for several clusters. The overview and the restarts page show all
// clusters, unless the query selects one. The other pages show a single cluster.
func NewFleet(members []*Member, o Options) *Site {
	f := newFleet(members, o)
	return newSite(f, f, o)
}

func newSite(of pages, f *fleet, o Options) *Site {
	d := newDoor(o.Token, o.Now)
	d.onGuess = o.OnGuess
	return &Site{door: d, streams: streams{most: mostStreams}, pages: of, fleet: f}
}

// Used returns a channel that is closed when the first browser tab is admitted.
func (s *Site) Used() <-chan struct{} { return s.door.entered }

// NewLink returns a link that admits a single browser tab. The code is in the fragment, because
// browsers do not send fragments in requests. The previous link becomes invalid.
func (s *Site) NewLink(at net.Addr) string { return "http://" + at.String() + "/#" + s.door.newCode() }

// Serve serves the dashboard until ctx is done. It discards the HTTP server's log, because the log
// would contain strings from clients.
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

// Handler returns the handler for all requests. The assets and the shell (the HTML document without
// data) require no authentication. All other routes require a token, except POST /-/enter, which
// requires a code or a ticket.
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

// isPage reports whether there is a page at the given path.
func isPage(path string) bool {
	_, _, found := route(path)
	return found
}

// serveShell serves the shell, the HTML document without data, at the path of every page. The
// shell's script holds the token, and fetches the page's content. For a path that ends with .json,
// serveShell responds with the page's data, which requires a token.
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

// envelope is the JSON response with a page's content, which the script in the browser displays.
type envelope struct {
	Title string `json:"title"`
	HTML  string `json:"html"`
	About About  `json:"about"`
	// Context is the context of the page's cluster. It is only set if the dashboard shows several
	// clusters.
	Context string `json:"context,omitempty"`
	// AsOf is the time at which the displayed objects were current, in the terminal's time zone.
	AsOf string `json:"asOf"`
	// Lost explains why the API server is unreachable. It is "" if the API server is reachable.
	Lost string `json:"lost,omitempty"`
	// Command is the kubectl tide command that prints the same data.
	Command string `json:"command"`
	// work is the time spent on building the page, excluding waiting for other pages or the API
	// server.
	work time.Duration
}

var errNoPage = errors.New("there is no such page")

// of returns the builder of the pages about the cluster that the query selects, or about all
// clusters. If the builder is for one of several clusters, the returned query contains the context
// of that cluster.
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

// render builds a page, and returns the envelope for the script.
func (s *Site) render(ctx context.Context, path string, query url.Values, h haste) (*envelope, error) {
	on, query, err := s.of(path, query)
	if err != nil {
		return nil, err
	}
	p, snapshot, err := on.build(ctx, path, query, h)
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
	e := &envelope{Title: p.title, HTML: html, About: frame.about, Context: frame.links.context, AsOf: frame.clock(snapshot.age()), Command: frame.links.command(p.command), work: p.work + time.Since(began)}
	if snapshot.lost != "" {
		e.AsOf, e.Lost = frame.clock(snapshot.lostAt), snapshot.lost
	}
	return e, nil
}

func (s *Site) servePage(w http.ResponseWriter, r *http.Request) {
	e, err := s.render(r.Context(), strings.TrimPrefix(r.URL.Path, "/-/page"), r.URL.Query(), opened)
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
	p, _, err := on.build(r.Context(), path, query, patient)
	if err != nil {
		reply(w, nil, err)
		return
	}
	reply(w, p.json, p.unknown)
}

// reply responds with a value as JSON, or with an error message in plain text.
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
