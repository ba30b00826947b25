// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"net/url"
	"slices"
)

// Member has the pages of a cluster.
type Member struct {
	frame  *frame
	world  *World
	models *models
}

// NewMember returns the pages of a cluster.
func NewMember(world *World, cluster Cluster, o Options) *Member {
	m := &Member{frame: newFrame(o.About, o.Local, o.Now), world: world, models: newModels(cluster, o.Now)}
	m.models.forecasts.made = world.tell
	return m
}

func (m *Member) head() *frame { return m.frame }

func (m *Member) build(ctx context.Context, path string, query url.Values) (*page, *snapshot, error) {
	b, argument, found := route(path)
	if !found {
		return nil, nil, errNoPage
	}
	defer m.hold(b)()
	r := &request{ctx: ctx, frame: m.frame, argument: argument, address: m.address(query), snapshot: m.read(ctx, b), models: m.models}
	if b.ahead != nil {
		r.play(b.ahead(r))
	}
	m.models.mu.Lock()
	defer m.models.mu.Unlock()
	p, err := b.page(r)
	return p, r.snapshot, err
}

// part returns the part of the cluster in a page about several.
func (m *Member) part(ctx context.Context, b builder, query url.Values) part {
	bounded, cancel := context.WithTimeout(ctx, fleetRead)
	defer cancel()
	p := part{member: m, snapshot: m.read(bounded, b)}
	p.request = &request{ctx: ctx, frame: m.frame, address: m.address(m.frame.links.query(query)), snapshot: p.snapshot, models: m.models, readOnly: true}
	silent := p.silent(m.kindsOf(b)) != ""
	if !silent && b.ahead != nil {
		p.request.play(b.ahead(p.request))
	}
	m.models.mu.Lock()
	defer m.models.mu.Unlock()
	if !silent {
		p.page, p.err = b.page(p.request)
	}
	return p
}

func (m *Member) address(query url.Values) address {
	return address{query, m.frame.about.Namespace}
}

// kindsOf returns the kinds that a page needs here.
func (m *Member) kindsOf(b builder) []string {
	kinds := slices.Clone(b.kinds)
	if i := slices.Index(kinds, kindPods); i >= 0 && b.own && m.frame.about.Namespace != "" {
		kinds[i] = KindOwnPods
	}
	return kinds
}

// read reads the objects that a page needs. Pods of the namespace become the pods of the page.
func (m *Member) read(ctx context.Context, b builder) *snapshot {
	kinds := m.kindsOf(b)
	snapshot := m.world.read(ctx, kinds)
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
