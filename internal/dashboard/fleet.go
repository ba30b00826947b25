// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// fleetRead is how long a page about several clusters waits for the first lists of each.
const fleetRead = 2 * time.Second

// NewFleet returns a site that shows several clusters, each with a site of its own, which is not
// served itself. Overview and Restarts are about all of them, unless the address names one; the
// other pages are about one.
func NewFleet(members []*Site, o Options) *Site {
	s := &Site{
		token: o.Token, now: o.Now, local: o.Local, members: members, templates: template.Must(templates.Clone()),
		streams: streams{most: mostStreams}, used: make(chan struct{}),
		changes: changes{next: make(chan struct{})},
	}
	for _, m := range members {
		m.context = m.about.Context
		m.templates.Funcs(template.FuncMap{"pool": m.poolHref, "page": m.href})
		m.world.onChange = s.changes.notify
	}
	s.about = About{Context: strings.Join(s.contexts(), ", "), Namespace: o.About.Namespace}
	return s
}

func (s *Site) contexts() []string {
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = m.context
	}
	return names
}

// changes says that something has changed in one of several clusters.
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

// nextChange returns a channel that is closed at the next change of what the site shows.
func (s *Site) nextChange() <-chan struct{} {
	if len(s.members) == 0 {
		_, later := s.world.changes()
		return later
	}
	s.changes.mu.Lock()
	defer s.changes.mu.Unlock()
	return s.changes.next
}

// hold keeps the watches that a page needs until it is released.
func (s *Site) hold(b builder) (release func()) {
	var held []func()
	if s.world != nil {
		held = append(held, s.world.hold(s.kindsOf(b)))
	}
	for _, m := range s.members {
		held = append(held, m.hold(b))
	}
	return func() {
		for _, release := range held {
			release()
		}
	}
}

// errNoContext is the error for a cluster that the site does not show.
var errNoContext = errors.New("there is no such context: the page shows those that --contexts has named")

// aboutAll reports whether a page can be about several clusters.
func aboutAll(path string) bool { return path == "/" || path == "/restarts" }

// of returns the site of the cluster that an address is about, and the query, which names it; the
// site itself if it shows one only, or the page is about all of them.
func (s *Site) of(path string, query url.Values) (*Site, url.Values, error) {
	name := query.Get("context")
	if len(s.members) == 0 || name == "" && aboutAll(path) {
		return s, query, nil
	}
	if name == "" {
		name = s.members[0].context
	}
	i := slices.Index(s.contexts(), name)
	if i < 0 {
		return nil, nil, errNoContext
	}
	return s.members[i], s.members[i].named(query), nil
}

// named returns a query with the name of the site's cluster.
func (s *Site) named(query url.Values) url.Values {
	named := url.Values{"context": {s.context}}
	for key, values := range query {
		if key != "context" {
			named[key] = values
		}
	}
	return named
}

// href returns the address of a page, perhaps with a fragment, in the site's cluster.
func (s *Site) href(path string) string {
	if s.context == "" {
		return path
	}
	path, fragment, found := strings.Cut(path, "#")
	path += "?context=" + url.QueryEscape(s.context)
	if found {
		path += "#" + fragment
	}
	return path
}

// poolHref returns the address of a pool.
func (s *Site) poolHref(name string) string { return s.href("/pools/" + url.PathEscape(name)) }

// serveActionOf does what a dialog was confirmed for, in the cluster that the address names.
// Nothing is done in a cluster that is not named.
func (s *Site) serveActionOf(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if len(s.members) > 0 && query.Get("context") == "" {
		http.Error(w, "say in which context", http.StatusBadRequest)
		return
	}
	on, _, err := s.of(r.URL.Path, query)
	if err != nil {
		answer(w, nil, err)
		return
	}
	on.serveAction(w, r)
}

// ofObject are the parameters that are about one object of a cluster, which another may not have.
var ofObject = []string{"node", "class", "restart", "pod", "like"}

// contextChoices returns the links to the same page of the other clusters, as HTML; "" if the
// site shows one only.
func (s *Site) contextChoices(on *Site, path string, query url.Values) (string, error) {
	if len(s.members) == 0 {
		return "", nil
	}
	if strings.HasPrefix(path, "/pools/") {
		path = "/" // Another cluster may not have the pool.
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
		list = append(list, choice{"all", all, on == s})
	}
	for _, m := range s.members {
		list = append(list, choice{m.context, path + "?" + m.named(rest).Encode(), on == m})
	}
	var out strings.Builder
	err := s.templates.ExecuteTemplate(&out, "contexts", list)
	return out.String(), err
}

// part is what one of several clusters has on a page.
type part struct {
	site     *Site
	snapshot *snapshot
	page     *page
	request  *request
	err      error
}

// silent returns why nothing of the cluster can be shown, "" if something can.
func (p *part) silent(kinds []string) string {
	for _, kind := range kinds {
		if p.snapshot.problems[kind] == "" && !p.snapshot.unserved[kind] {
			return ""
		}
	}
	return p.snapshot.problem(kinds...)
}

// buildFleet returns a page that is about all clusters. None of them waits for another, and none
// is waited for long.
func (s *Site) buildFleet(ctx context.Context, path string, b builder, query url.Values) (*page, *snapshot, error) {
	parts := make([]part, len(s.members))
	var reading sync.WaitGroup
	for i, m := range s.members {
		reading.Go(func() { parts[i] = m.part(ctx, b, query) })
	}
	reading.Wait()
	r := &request{ctx: ctx, site: s, query: query, snapshot: &snapshot{now: s.now()}}
	lost := 0
	for i := range parts {
		p := &parts[i]
		if p.err != nil {
			return nil, nil, p.err
		}
		if p.snapshot.lost != "" {
			lost++
			r.snapshot.lost, r.snapshot.lostAt = p.snapshot.lost, p.snapshot.lostAt
		}
	}
	if lost < len(parts) {
		r.snapshot.lost = "" // Those that are lost are named on the page.
	}
	if path == "/" {
		return fleetOverview(r, parts, b.kinds), r.snapshot, nil
	}
	return fleetRestarts(r, parts, b.kinds), r.snapshot, nil
}

// part reads what the cluster has on a page that is about several.
func (s *Site) part(ctx context.Context, b builder, query url.Values) part {
	bounded, cancel := context.WithTimeout(ctx, fleetRead)
	defer cancel()
	p := part{site: s, snapshot: s.read(bounded, b)}
	p.request = &request{ctx: ctx, site: s, query: s.named(query), snapshot: p.snapshot, models: s.models, amongOthers: true}
	silent := p.silent(s.kindsOf(b)) != ""
	if !silent && b.ahead != nil {
		p.request.play(b.ahead(p.request))
	}
	s.models.mu.Lock()
	defer s.models.mu.Unlock()
	if !silent {
		p.page, p.err = b.page(p.request)
	}
	return p
}
