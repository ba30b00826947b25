// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view computes the form in which Tidekeeper's objects are shown: plain structs,
// made from objects and a time, without a client, a clock or a screen. The
// kubectl plugin draws them as tables and prints them as JSON.
//
//   - status.go: conditions as a word and how bad it is
//   - pool.go, pool_detail.go, pool_settings.go: NodePools, and a pool with its nodes
//   - plan.go, plan_groups.go: the changes that applying NodePools would make
//   - restart.go, history.go, pod_ages.go: ScheduledRestarts, and the outcomes of their ticks
//   - calendar.go, calendar_of.go, forecast.go, explain.go: the coming starts, the ticks that are not started, and a
//     schedule in words
//   - startup.go, startup_groups.go, startup_waits.go, startup_stages.go: how pods came up, and how long each
//     stage takes
//   - manager.go, manager_settings.go: which manager leads, its settings, and whether it runs
//   - room.go, room_text.go: copies that fit, losses, and pending pods
//   - blockers.go: pods that would not leave nodes
//   - used.go: the usage of nodes
//   - gates.go: whether a restart would start now
//   - freeze.go: freezes that have not ended
//   - filter.go: names that have a text in them
//   - event.go: events about an object
package view
