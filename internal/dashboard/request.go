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

// request is a request for a page of a cluster, with all data that the page is built from.
type request struct {
	ctx      context.Context
	frame    *frame
	argument string // the last part of the path, such as the name of a pool
	address  address
	snapshot *snapshot
	models   *models
	// asks are the questions of the page to the API server.
	asks *questions
	// readOnly hides the buttons, on a page about all clusters.
	readOnly bool
	// played is the forecast, on pages that have one.
	played shownForecast
}

func (r *request) now() time.Time { return r.snapshot.now }

func (r *request) local() *time.Location { return r.frame.local }

func (r *request) room() *view.Room { return r.models.rooms.in(r.snapshot) }

func (r *request) losses() []view.PoolLoss { return r.models.rooms.lossesIn(r.snapshot) }

// events returns the events about an object; none if the user may not read them.
func (r *request) events(ref ObjectRef) []corev1.Event {
	return r.asks.eventsAbout(ref)
}

// manager returns the state of the manager.
func (r *request) manager() view.Manager {
	return r.asks.manager(r.snapshot.lost == "")
}

// noManager explains that no manager runs, and since when; "" if a manager seems to run.
func (r *request) noManager() string {
	if r.snapshot.lost != "" {
		return "" // The page already says that all of it is outdated.
	}
	var unobserved view.Unobserved
	for _, restart := range r.snapshot.restarts() {
		unobserved.AddRestart(restart, r.now())
	}
	return view.Outdated(r.manager(), unobserved, r.now())
}

// settings returns the manager's settings.
func (r *request) settings() view.Settings { return view.SettingsOf(r.manager().Published) }

// buttons returns the actions that the user may perform.
func (r *request) buttons() *buttons {
	return &buttons{context: r.frame.about.Context, namespace: r.frame.about.Namespace, freezable: !r.snapshot.unserved[kindFreezes], may: func(right Right) bool {
		return !r.readOnly && r.asks.may(right)
	}}
}

// gates returns a reader of gates.
func (r *request) gates() *gateReader { return &gateReader{r.snapshot, r.settings()} }

// startups returns the pod start-ups that the address selects.
func (r *request) startups() *startups {
	return &startups{now: r.now(), local: r.local(), address: r.address, pods: r.snapshot.pods(), events: r.events, links: r.frame.links}
}

// restartTable returns the table of the restarts that the address selects.
func (r *request) restartTable() *restartTable {
	return &restartTable{now: r.now(), local: r.local(), address: r.address, freezes: r.snapshot.freezes()}
}

// play computes the forecast for a period ahead, before the lock of the pages is taken.
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
	key := s.version(restartsKinds...) + namespace + fmt.Sprint(settings.Limits)
	r.played = r.models.forecasts.get(r.ctx, ahead, key, func() forecast.Input {
		now := s.now.Truncate(time.Second)
		return forecast.Input{
			Restarts: copies(s.restarts()), Targets: s.targets(), Freezes: s.freezes(), Limits: settings.Limits, AssumedDuration: assumedDuration,
			Now: now, Until: now.Add(ahead), Namespace: namespace, MostListed: view.MostListed,
		}
	})
}

// settingsText describes the settings that a forecast assumes.
func settingsText(s view.Settings) string {
	text := fmt.Sprintf("restarts take as long as the last one, or %s", view.FormatDuration(assumedDuration))
	if assumed := s.AssumedText(s.Assumed...); assumed != "" {
		return text + "; the manager is started with " + assumed
	}
	return text
}
