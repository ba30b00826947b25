// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view prepares Tidekeeper's objects for display. It computes plain structs from objects
// and a time, and needs no client, clock or screen. The kubectl plugin draws the structs as tables
// or prints them as JSON, and its dashboard shows them on pages.
//
//	status.go                           an object's state as a reason with a severity
//	pool.go, pool_detail.go,            summaries of NodePools, and a pool's details
//	pool_settings.go
//	plan.go, plan_groups.go             the changes that applying NodePools would cause
//	restart.go, history.go,             summaries of ScheduledRestarts, and their past ticks
//	pod_ages.go
//	calendar.go, calendar_of.go,        future starts, ticks without a start, and a schedule in
//	forecast.go, explain.go             words
//	startup.go, startup_groups.go,      start-ups of pods, and how long each stage takes
//	startup_waits.go,
//	startup_stages.go
//	manager.go, manager_settings.go     the leader, its settings, and evidence of a missing manager
//	room.go, room_text.go               copies of a pod that fit, losses of nodes, and pending pods
//	preemption.go                       pods that the scheduler would evict for a pod
//	newnodes.go                         copies of a pod on new nodes of a pool
//	blockers.go                         the pods that block draining nodes
//	maintenance.go,                     summaries of NodeMaintenances, and the nodes of a round with
//	maintenance_round.go,               what they wait for
//	maintenance_detail.go
//	used.go                             the measured usage of nodes
//	gates.go                            the gates (conditions for starting) of a restart
//	freeze.go                           Freezes that have not ended
//	filter.go                           the filter by name
//	event.go                            events about an object
package view
