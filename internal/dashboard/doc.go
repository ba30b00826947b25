// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves pages about a cluster to the browsers of this machine: pools and
// their levels, what fits and what would be lost, restarts past and coming, and pods as they
// start. It computes no numbers of its own: they are those of internal/view, internal/capacity
// and internal/restart/forecast, as the commands of the plugin print them.
//
//   - site.go: the server and its routes
//   - guard.go: which requests are answered
//   - stream.go: pages that are kept up to date
//   - world.go, feed.go, snapshot.go: what is read from the cluster, and for how long
//   - models.go, forecasts.go: what is computed from that, once per change
//   - page.go, render.go: from an address to HTML
//   - overview.go, pool.go, capacity.go, restarts.go, startup.go: the five pages
//   - like.go: a workload as what the form asks for
//   - fleet.go, fleet_pages.go: several clusters on one site
//   - draw.go, strip.go, lanes.go, stages.go: the measures of bars, maps, strips, lanes and
//     histograms
//   - gates.go: which gates of a restart are closed
//   - freezes.go: freezes, on the page of restarts
//   - actions.go: what may be done, with --allow-actions
//   - templates/, assets/: HTML, style and script, embedded
package dashboard
