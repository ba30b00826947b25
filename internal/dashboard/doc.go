// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves pages about a cluster to the browsers of this machine: pools and
// their levels, copies that fit, losses, restarts past and coming, and pods as they
// start. It computes no numbers of its own: they come from internal/view, internal/capacity
// and internal/restart/forecast, as the commands of the plugin print them.
//
//   - site.go: the server and its routes
//   - guard.go: which requests are answered
//   - door.go: the codes, tickets and tokens of tabs
//   - stream.go: pages that are kept up to date
//   - member.go: the pages of a cluster
//   - fleet.go, fleet_pages.go: the pages about several clusters
//   - world.go, feed.go: the watches of the cluster, and how long they last
//   - snapshot.go, targets.go: the objects of the cluster at a moment
//   - unknown.go: numbers that are not known, as objects may not be read
//   - models.go, rooms.go, forecasts.go: computed from a snapshot, once per change
//   - lookups.go: read without a watch, and kept for a while
//   - page.go, request.go, address.go, links.go, render.go: from an address to HTML
//   - overview.go, pool.go, capacity.go, restarts.go, startup.go: the five pages
//   - headline.go: what needs attention, in a line
//   - restart_table.go, freezes.go: rows of restarts and freezes
//   - names.go: names and times in the form that all pages have
//   - like.go: a workload in the form of the page about capacity
//   - draw.go, strip.go, lanes.go, stages.go: the measures of bars, maps, strips, lanes and
//     histograms
//   - gates.go: which gates of a restart are closed
//   - actions.go: buttons and their requests, with --allow-actions
//   - templates/, assets/: HTML, style and script, embedded
package dashboard
