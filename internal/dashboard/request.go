// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// request is a request for a page about a cluster, with the data needed to build the page.
type request struct {
	ctx      context.Context
	frame    *frame
	argument string // last part of the path, such as the name of a pool
	address  address
	snapshot *snapshot
	models   *models
	// asks collects the page's lookups in the API server.
	asks *questions
	// readOnly hides the buttons. It is set on a page about all clusters.
	readOnly bool
	// recent is set if the page may show values that were computed up to recentAge ago.
	recent bool
	// model is the model of the free capacity. It is nil if the free capacity is unknown. computing
	// is the time spent on computing the model.
	model     *roomModel
	computing time.Duration
	// played is the forecast of restarts. It is only set for pages with a forecast.
	played shownForecast
	// started caches the start-ups of the page's pods. A key is the length of the period before now
	// in which the pods were created; 0 means no limit.
	started map[time.Duration][]view.Startup
}

func (r *request) now() time.Time { return r.snapshot.now }

func (r *request) local() *time.Location { return r.frame.local }

// events returns the events about an object, or the reason why they are unknown.
func (r *request) events(ref ObjectRef) (events []corev1.Event, unknown string) {
	return r.asks.eventsAbout(ref)
}

// manager returns the state of Tidekeeper's manager.
func (r *request) manager() view.Manager {
	return r.asks.manager(r.snapshot.lost == "")
}

// noManager describes the evidence that no manager is running. It returns "" if there is no
// evidence.
func (r *request) noManager() string {
	if r.snapshot.lost != "" {
		return "" // The page already shows that all of its data is outdated.
	}
	return view.Outdated(r.manager(), r.unobserved(), r.now())
}

// unobserved counts the ScheduledRestarts with a change, a restart request or a due tick (scheduled
// time) that no manager has observed in time.
func (r *request) unobserved() (u view.Unobserved) {
	for _, restart := range r.snapshot.restarts() {
		u.AddRestart(restart, r.now())
	}
	return u
}

// settings returns the settings that the manager published, with defaults for settings that it did
// not publish.
func (r *request) settings() view.Settings { return view.SettingsOf(r.manager().Published) }

// buttons returns the builder of action buttons, which checks the user's permissions.
func (r *request) buttons() *buttons {
	return &buttons{context: r.frame.about.Context, namespace: r.frame.about.Namespace, freezable: !r.snapshot.unserved[kindFreezes], may: func(right Right) bool {
		return !r.readOnly && r.asks.may(right)
	}}
}

// gates returns a reader that evaluates the gates (conditions for starting) of ScheduledRestarts.
func (r *request) gates() *gateReader {
	return &gateReader{snapshot: r.snapshot, settings: r.settings()}
}

// startups returns the pod start-ups that the page's query selects.
func (r *request) startups() *startups {
	if r.started == nil {
		r.started = map[time.Duration][]view.Startup{}
	}
	return &startups{now: r.now(), local: r.local(), address: r.address, pods: r.snapshot.pods(), events: r.events, links: r.frame.links, known: r.started}
}

// restartTable returns the builder for rows of the ScheduledRestarts that the page's query selects.
func (r *request) restartTable() *restartTable {
	return &restartTable{now: r.now(), local: r.local(), address: r.address, freezes: r.snapshot.freezes()}
}

// compute sets r.model if the page needs the free capacity, and r.played if it needs a forecast. It
// must be called before the lock of the pages is acquired, so that it does not block other pages.
func (r *request) compute(b builder) {
	if b.room {
		began := time.Now()
		r.model = r.models.rooms.of(r.ctx, r.snapshot, r.recent)
		r.computing = time.Since(began)
	}
	if b.ahead != nil {
		r.play(b.ahead(r))
	}
}

// play sets r.played to the forecast of restarts for a period into the future.
func (r *request) play(ahead time.Duration) {
	s := r.snapshot
	if s.problem(kindRestarts) != "" {
		return
	}
	settings := r.settings()
	if r.asks.await() {
		settings = r.settings()
	}
	namespace := r.frame.about.Namespace
	leading := view.LeadingSince(r.manager(), r.unobserved(), s.now)
	key := s.version(s.forecastKinds()...) + namespace + fmt.Sprint(settings.Limits, leading.Equal(s.now))
	recent := r.recent && s.large()
	r.played = r.models.forecasts.get(r.asks.ctx, ahead, key, recent, func() forecast.Input {
		now := s.now.Truncate(time.Second)
		return forecast.Input{
			Restarts: s.restarts(), Targets: s.targets(), Freezes: s.freezes(), Limits: settings.Limits, AssumedDuration: assumedDuration,
			LeadingSince: leading.Truncate(time.Second), Now: now, Until: now.Add(ahead), Namespace: namespace, MostListed: view.MostListed,
		}
	})
	if recent && r.played.old && s.now.Sub(r.played.at) < recentAge {
		r.played.old = false // The page instead shows the forecast's time as the time of all its data.
		s.olderThan(r.played.at)
	}
}

// settingsText describes the assumptions of a restart forecast.
func settingsText(s view.Settings) string {
	text := fmt.Sprintf("restarts take as long as the last one, or %s", view.FormatDuration(assumedDuration))
	if assumed := s.AssumedText(s.Assumed...); assumed != "" {
		return text + "; the manager is started with " + assumed
	}
	return text
}
