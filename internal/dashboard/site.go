// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// About says whose cluster is shown, and to whom.
type About struct {
	Context string `json:"context"`
	Server  string `json:"server"`
	User    string `json:"user"`
	// Namespace is the one whose restarts and pods are shown; "" means all.
	Namespace string `json:"namespace,omitempty"`
}

// Cluster is what the site asks of the cluster beside the world.
type Cluster struct {
	// Metrics returns what nodes use.
	Metrics func(ctx context.Context) view.NodeMetrics
	// Events returns the events about an object. An error says why there are none.
	Events func(ctx context.Context, about ObjectRef) ([]corev1.Event, error)
	// PodLike returns a copy of the pods of a workload that TYPE/NAME names, in the namespace of
	// the context if none is named. lacks says what it is evaluated without.
	PodLike func(ctx context.Context, namespace, like string) (pod *corev1.Pod, lacks string, err error)
	// Manager returns what is known of the manager, as far as the user may read it.
	Manager func(ctx context.Context) view.Manager
	// Actions are what may be done; nil without --allow-actions.
	Actions Actions
}

// ObjectRef names an object.
type ObjectRef struct {
	Kind, Namespace, Name string
	UID                   types.UID
}

// Options are the settings of a [Site].
type Options struct {
	About About
	Token string
	Now   func() time.Time
	Local *time.Location
}

// Site serves the pages.
type Site struct {
	about   About
	token   string
	now     func() time.Time
	local   *time.Location
	world   *World
	cluster Cluster
	models  *models
	streams streams
	// templates make the links of the site's cluster.
	templates *template.Template
	// members are the clusters of a site that shows several, each as a site of its own; it has no
	// world, cluster and models then. context is how addresses name a member.
	members []*Site
	context string
	changes changes
	// used is closed with the first request that shows the token.
	used     chan struct{}
	usedOnce sync.Once
}

// NewSite returns a site that shows a world.
func NewSite(world *World, cluster Cluster, o Options) *Site {
	m := newModels(cluster, o.Now)
	m.forecasts.made = world.tell
	return &Site{
		about: o.About, token: o.Token, now: o.Now, local: o.Local, world: world, cluster: cluster,
		models: m, streams: streams{most: mostStreams}, used: make(chan struct{}), templates: template.Must(templates.Clone()),
	}
}

// Used is closed when a browser has shown the token for the first time.
func (s *Site) Used() <-chan struct{} { return s.used }

// Link returns the address that a browser is to open. Browsers do not send what is behind #.
func (s *Site) Link(at net.Addr) string { return "http://" + at.String() + "/#" + s.token }

// Serve serves the site until the context ends. The log of the HTTP server is dropped: it would
// have what a client sends in it.
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

// Handler answers all requests. Pages, script and style have no data in them; everything else
// asks for the token.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/page/", s.withToken(s.servePage))
	mux.HandleFunc("GET /-/stream/", s.withToken(s.serveStream))
	mux.HandleFunc("POST /-/act", s.withToken(s.serveActionOf))
	mux.HandleFunc("GET /-/{asset}", serveAsset)
	mux.HandleFunc("GET /", s.serveShell)
	return s.guard(mux)
}

// isPage reports whether a path is that of a page.
func isPage(path string) bool {
	_, _, found := route(path)
	return found
}

// serveShell serves the same page for all paths: what is in it comes by its script, which has
// the token. What ends with .json is data.
func (s *Site) serveShell(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ".json") {
		s.withToken(s.serveJSON)(w, r)
		return
	}
	if !isPage(r.URL.Path) {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(shell)
}

// envelope is a page as the script gets it.
type envelope struct {
	Title string `json:"title"`
	HTML  string `json:"html"`
	About About  `json:"about"`
	// Context is that of the cluster of the page, if the site shows several.
	Context string `json:"context,omitempty"`
	// AsOf is the time of what is shown, on the clock of the terminal.
	AsOf string `json:"asOf"`
	// Lost says that the API server cannot be reached, and why.
	Lost string `json:"lost,omitempty"`
	// Command is the twin of the page for the terminal.
	Command string `json:"command"`
}

// build returns the page of a path.
func (s *Site) build(ctx context.Context, path string, query url.Values) (*page, *snapshot, error) {
	build, argument, found := route(path)
	if !found {
		return nil, nil, errNoPage
	}
	if len(s.members) > 0 {
		return s.buildFleet(ctx, path, build, query)
	}
	defer s.hold(build)()
	r := &request{ctx: ctx, site: s, argument: argument, query: query, snapshot: s.read(ctx, build), models: s.models}
	if build.ahead != nil {
		r.play(build.ahead(r))
	}
	s.models.mu.Lock()
	defer s.models.mu.Unlock()
	p, err := build.page(r)
	return p, r.snapshot, err
}

// kindsOf returns the kinds that a page needs here.
func (s *Site) kindsOf(b builder) []string {
	kinds := slices.Clone(b.kinds)
	if i := slices.Index(kinds, kindPods); i >= 0 && b.own && s.about.Namespace != "" {
		kinds[i] = KindOwnPods
	}
	return kinds
}

// read reads what a page needs. Whichever pods these are, they are the pods of the page.
func (s *Site) read(ctx context.Context, b builder) *snapshot {
	kinds := s.kindsOf(b)
	snapshot := s.world.read(ctx, kinds)
	if slices.Contains(kinds, KindOwnPods) {
		snapshot.objects[kindPods], snapshot.versions[kindPods] = snapshot.objects[KindOwnPods], snapshot.versions[KindOwnPods]
		if p := snapshot.problems[KindOwnPods]; p != "" {
			snapshot.problems[kindPods] = p
		}
	}
	return snapshot
}

var errNoPage = errors.New("there is no such page")

// render returns a page as the script gets it.
func (s *Site) render(ctx context.Context, path string, query url.Values) (*envelope, error) {
	on, query, err := s.of(path, query)
	if err != nil {
		return nil, err
	}
	p, snapshot, err := on.build(ctx, path, query)
	if err != nil {
		return nil, err
	}
	html, err := p.render(on)
	if err != nil {
		return nil, err
	}
	choices, err := s.contextChoices(on, path, query)
	if err != nil {
		return nil, err
	}
	e := &envelope{Title: p.title, HTML: choices + html, About: on.about, Context: on.context, AsOf: snapshot.now.In(s.local).Format(time.TimeOnly), Command: on.command(p.command)}
	if snapshot.lost != "" {
		e.AsOf = snapshot.lostAt.In(s.local).Format(time.TimeOnly)
		e.Lost = snapshot.lost
	}
	return e, nil
}

func (s *Site) servePage(w http.ResponseWriter, r *http.Request) {
	e, err := s.render(r.Context(), strings.TrimPrefix(r.URL.Path, "/-/page"), r.URL.Query())
	answer(w, e, err)
}

func (s *Site) serveJSON(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, ".json")
	if path == "/overview" {
		path = "/"
	}
	on, query, err := s.of(path, r.URL.Query())
	if err != nil {
		answer(w, nil, err)
		return
	}
	p, _, err := on.build(r.Context(), path, query)
	if err != nil {
		answer(w, nil, err)
		return
	}
	answer(w, p.json, nil)
}

// answer sends a value as JSON, or an error as one line.
func answer(w http.ResponseWriter, value any, err error) {
	switch {
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
