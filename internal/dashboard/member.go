// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"net/url"
	"slices"
	"time"
)

// Member builds the pages about one cluster.
type Member struct {
	frame  *frame
	world  *World
	models *models
}

// NewMember returns a Member for one cluster.
func NewMember(world *World, cluster Cluster, o Options) *Member {
	m := &Member{frame: newFrame(o.About, o.Local, o.Now), world: world, models: newModels(cluster, o.Now)}
	m.models.forecasts.made, m.models.lookups.onLate = world.tell, world.tell
	return m
}

func (m *Member) head() *frame { return m.frame }

func (m *Member) build(ctx context.Context, path string, query url.Values, h haste) (*page, *snapshot, error) {
	b, argument, found := route(path)
	if !found {
		return nil, nil, errNoPage
	}
	defer m.hold(b)()
	r := &request{ctx: ctx, frame: m.frame, argument: argument, address: m.address(query), snapshot: m.read(ctx, b, h), models: m.models, recent: h.recent}
	bounded, cancel := r.answersWithin(ctx)
	defer cancel()
	r.asks = m.models.lookups.questions(bounded, r.now())
	r.compute(b)
	p, err := m.make(b, r)
	return p, r.snapshot, err
}

// answersWithin returns a context that is done when the page must be shown even if its lookups or its
// forecast are still running. A page that lists come late for is not delayed further.
func (r *request) answersWithin(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.recent && (r.snapshot.large() || r.snapshot.late) {
		return context.WithTimeout(ctx, answerPatience)
	}
	return context.WithCancel(ctx)
}

// mostRounds is the maximum number of times that a page is built for a single request. A page is
// built repeatedly because the answer to a lookup can lead to another lookup.
const mostRounds = 4

// make builds a page. If the page needs lookups, it waits for their answers without holding the
// lock of the pages, and then builds the page again.
func (m *Member) make(b builder, r *request) (*page, error) {
	work := r.computing
	for round := 1; ; round++ {
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err() // Another page has been opened in the tab.
		}
		m.models.mu.Lock()
		began := time.Now()
		p, err := b.page(r)
		work += time.Since(began)
		m.models.mu.Unlock()
		if round < mostRounds && r.asks.await() {
			continue
		}
		if p != nil {
			p.work = work
		}
		return p, err
	}
}

// part returns the cluster's data for a page about all clusters.
func (m *Member) part(ctx context.Context, b builder, query url.Values, h haste) part {
	bounded, cancel := context.WithTimeout(ctx, fleetRead)
	defer cancel()
	p := part{member: m, snapshot: m.read(bounded, b, h)}
	p.request = &request{ctx: ctx, frame: m.frame, address: m.address(m.frame.links.query(query)), snapshot: p.snapshot, models: m.models, readOnly: true, recent: h.recent}
	p.request.asks = m.models.lookups.questions(bounded, p.snapshot.now)
	if p.silent(m.kindsOf(b)) == "" {
		p.request.compute(b)
		p.page, p.err = m.make(b, p.request)
	}
	return p
}

func (m *Member) address(query url.Values) address {
	return address{query, m.frame.about.Namespace}
}

// kindsOf returns the names of the kinds that a page of this cluster needs.
func (m *Member) kindsOf(b builder) []string {
	kinds := slices.Clone(b.kinds)
	if i := slices.Index(kinds, kindPods); i >= 0 && b.own && m.frame.about.Namespace != "" {
		kinds[i] = KindOwnPods
	}
	return kinds
}

// read reads the objects that a page needs. If the page only needs pods of the namespace to which
// the dashboard is limited, the snapshot contains no other pods.
func (m *Member) read(ctx context.Context, b builder, h haste) *snapshot {
	kinds := m.kindsOf(b)
	snapshot := m.world.read(ctx, kinds, h)
	if slices.Contains(kinds, KindOwnPods) {
		snapshot.objects[kindPods], snapshot.versions[kindPods] = snapshot.objects[KindOwnPods], snapshot.versions[KindOwnPods]
		if p := snapshot.problems[KindOwnPods]; p != "" {
			snapshot.problems[kindPods], snapshot.checks[kindPods] = p, snapshot.checks[KindOwnPods]
		}
	}
	return snapshot
}

func (m *Member) hold(b builder) (release func()) { return m.world.hold(m.kindsOf(b)) }

func (m *Member) nextChange() <-chan struct{} {
	_, later := m.world.changes()
	return later
}
