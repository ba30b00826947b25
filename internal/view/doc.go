// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view computes what is shown of Tidekeeper's objects: plain structs,
// made from objects and a time, without a client, a clock or a screen. The
// kubectl plugin draws them as tables and prints them as JSON.
//
//   - status.go: conditions as a word and how bad it is
//   - pool.go, pool_detail.go, pool_settings.go: NodePools, and one of them with its nodes
//   - plan.go, plan_groups.go: what applying NodePools would change
//   - restart.go, history.go, pod_ages.go: ScheduledRestarts, and what became of their ticks
//   - calendar.go, calendar_of.go, forecast.go, explain.go: the coming starts, what is not restarted, and a
//     schedule in words
//   - startup.go, startup_waits.go, startup_stages.go: how pods came up, and how long each
//     stage takes
//   - manager.go, manager_settings.go: which manager leads, how it is set, and whether one runs
//   - room.go, room_text.go: what fits, what would be lost, and what is pending
//   - used.go: what nodes use
//   - gates.go: whether a restart would start now
//   - freeze.go: freezes that have not ended
//   - event.go: events about an object
package view
