// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves pages about a cluster to browsers on this machine. The pages show pools
// and the requested percentages of their resources, how many copies of a pod fit, the effects of
// losing nodes, past and future restarts, and the start-ups of pods. All numbers come from
// internal/view, internal/capacity and internal/restart/forecast, so they equal the output of the
// plugin's commands.
//
//	site.go                             the HTTP server and its routes
//	guard.go                            rejects requests from other websites and for other hosts
//	door.go                             authentication of browser tabs by codes, tickets and tokens
//	stream.go                           sends a page again when its objects change
//	member.go                           the pages about a single cluster
//	fleet.go, fleet_pages.go            the pages about all clusters of a dashboard
//	world.go, feed.go                   the watches of a cluster, which end when no page needs them
//	snapshot.go, targets.go             the watched objects as of one time
//	unknown.go                          errors for numbers that are unknown because objects could
//	                                    not be read
//	models.go, rooms.go, forecasts.go   values computed from a snapshot, cached until it changes
//	processor_unix.go, processor_windows.go   the CPU time of the process
//	lookups.go                          data read without a watch, cached for a limited time
//	page.go, request.go, address.go,    building the HTML of the page at a URL
//	links.go, render.go
//	overview.go, pool.go, capacity.go,  the five pages
//	restarts.go, startup.go
//	headline.go                         the line that summarizes the problems that need attention
//	restart_table.go, freezes.go        table rows for ScheduledRestarts and Freezes
//	names.go                            names and times, formatted for display
//	drain.go                            the pods that block draining a node
//	maintenance.go                      rounds of maintenance, and the nodes that are being
//	                                    maintained
//	like.go                             selecting a workload in the form on the capacity page
//	sequence.go                         nodes that are lost one after the other, on the capacity page
//	draw.go, strip.go, lanes.go,        dimensions of charts: bars, node maps and histograms
//	stages.go
//	gates.go                            the gates (conditions for starting) of a restart
//	actions.go                          the buttons of --allow-actions, and their requests
//	templates/, assets/                 embedded HTML templates, style sheet and script
package dashboard
