// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// fleetRead is the maximum time that a page about all clusters waits for the data of each cluster.
const fleetRead = 2 * time.Second

// fleet builds the pages of a dashboard for several clusters: pages about a single cluster, and
// pages about all clusters.
type fleet struct {
	frame   *frame
	now     func() time.Time
	members []*Member
	changes changes
}

func newFleet(members []*Member, o Options) *fleet {
	f := &fleet{now: o.Now, members: members, changes: changes{next: make(chan struct{})}}
	for _, m := range members {
		m.frame.setContext(m.frame.about.Context)
		m.world.onChange = f.changes.notify
	}
	f.frame = newFrame(About{Context: strings.Join(f.contexts(), ", "), Namespace: o.About.Namespace}, o.Local, o.Now)
	return f
}

func (f *fleet) contexts() []string {
	names := make([]string, len(f.members))
	for i, m := range f.members {
		names[i] = m.frame.links.context
	}
	return names
}

// changes notifies the streams of open pages of a change in any cluster.
type changes struct {
	mu   sync.Mutex
	next chan struct{}
}

func (c *changes) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}

// later returns a channel that is closed at the next change in any cluster.
func (c *changes) later() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

func (f *fleet) head() *frame { return f.frame }

func (f *fleet) nextChange() <-chan struct{} { return f.changes.later() }

func (f *fleet) hold(b builder) (release func()) {
	held := make([]func(), len(f.members))
	for i, m := range f.members {
		held[i] = m.hold(b)
	}
	return func() {
		for _, release := range held {
			release()
		}
	}
}

// errNoContext is the error for a kubeconfig context that the dashboard does not show.
var errNoContext = errors.New("there is no such context: the page shows only the contexts in --contexts")

// aboutAll reports whether the page at the given path can show all clusters together.
func aboutAll(path string) bool { return path == "/" || path == "/restarts" }

// of returns the cluster that the query parameter "context" selects, or nil for a page about all
// clusters. Without the parameter, a page that cannot be about all clusters is about the first
// cluster. If of returns a cluster, the returned query contains the cluster's context.
func (f *fleet) of(path string, query url.Values) (*Member, url.Values, error) {
	name := query.Get("context")
	if name == "" && aboutAll(path) {
		return nil, query, nil
	}
	if name == "" {
		name = f.members[0].frame.links.context
	}
	i := slices.Index(f.contexts(), name)
	if i < 0 {
		return nil, nil, errNoContext
	}
	return f.members[i], f.members[i].frame.links.query(query), nil
}

// ofObject lists the query parameters that select an object or a part of a page. Links to other
// clusters omit them, because another cluster may not have the object.
var ofObject = []string{"node", "class", "restart", "pod", "like", "lose", "cordon"}

// choices returns links, as HTML, to the same page for each cluster. chosen is the current context,
// or "" for a page about all clusters.
func (f *fleet) choices(chosen, path string, query url.Values) (string, error) {
	if strings.HasPrefix(path, "/pools/") {
		path = "/" // Another cluster may not have a pool with the same name.
	}
	rest := url.Values{}
	for key, values := range query {
		if key != "context" && !slices.Contains(ofObject, key) {
			rest[key] = values
		}
	}
	var list []choice
	if aboutAll(path) {
		all := path
		if len(rest) > 0 {
			all += "?" + rest.Encode()
		}
		list = append(list, choice{"all", all, chosen == ""})
	}
	for _, m := range f.members {
		links := m.frame.links
		list = append(list, choice{links.context, path + "?" + links.query(rest).Encode(), chosen == links.context})
	}
	var out strings.Builder
	err := f.frame.templates.ExecuteTemplate(&out, "contexts", list)
	return out.String(), err
}

// serveActionOf performs a confirmed action in the cluster that the query names. If the dashboard
// shows several clusters, it rejects a request without a context.
func (s *Site) serveActionOf(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if s.fleet != nil && query.Get("context") == "" {
		http.Error(w, "say in which context", http.StatusBadRequest)
		return
	}
	on, _, err := s.of(r.URL.Path, query)
	if err != nil {
		reply(w, nil, err)
		return
	}
	if member, ok := on.(*Member); ok {
		serveAction(member.models.lookups.cluster.Actions, w, r)
	}
}

// part is the data of one cluster for a page about all clusters.
type part struct {
	member   *Member
	snapshot *snapshot
	page     *page
	request  *request
	err      error
}

// context returns the kubeconfig context of the cluster.
func (p *part) context() string { return p.member.frame.links.context }

// silent returns the reason why no objects of any of the given kinds can be shown. It returns "" if
// the objects of at least one kind can be shown.
func (p *part) silent(kinds []string) string {
	for _, kind := range kinds {
		if p.snapshot.problems[kind] == "" && !p.snapshot.unserved[kind] {
			return ""
		}
	}
	return p.snapshot.problem(kinds...)
}

// build builds a page about all clusters. It reads all clusters concurrently, and waits at most
// fleetRead for each.
func (f *fleet) build(ctx context.Context, path string, query url.Values, h haste) (*page, *snapshot, error) {
	b, _, found := route(path)
	if !found {
		return nil, nil, errNoPage
	}
	parts := make([]part, len(f.members))
	var reading sync.WaitGroup
	for i, m := range f.members {
		reading.Go(func() { parts[i] = m.part(ctx, b, query, h) })
	}
	reading.Wait()
	shown := &snapshot{now: f.now()}
	lost, work := 0, time.Duration(0)
	for i := range parts {
		p := &parts[i]
		if p.page != nil {
			work += p.page.work
		}
		if p.err != nil {
			return nil, nil, p.err
		}
		if !p.snapshot.asOf.IsZero() {
			shown.olderThan(p.snapshot.asOf)
		}
		if p.snapshot.lost != "" {
			lost++
			shown.lost, shown.lostAt = p.snapshot.lost, p.snapshot.lostAt
		}
	}
	if lost < len(parts) {
		shown.lost = "" // The content of the page already names the clusters that are unreachable.
	}
	all := &fleetPages{now: shown.now, local: f.frame.local, address: address{query, f.frame.about.Namespace}, contexts: f.contexts(), parts: parts, kinds: b.kinds}
	began := time.Now()
	made := all.restarts
	if path == "/" {
		made = all.overview
	}
	p := made()
	p.work = work + time.Since(began)
	return p, shown, nil
}
