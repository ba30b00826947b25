// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule turns a cron expression and a time zone into ticks: the
// instants at which something is due. It reads no clock and keeps no state, so
// that the same question always has the same answer.
//
// The ticks are worked out in two steps. The expression is a calendar of wall
// clock times, and go-cron finds the next or the previous of them on a clock
// that is never changed (UTC). What a change of the clock does to them is then
// decided here, from the zone's offsets, see [Schedule.Next]. go-cron's own
// handling of zones is not used: it runs a fixed time twice in the autumn
// overlap, and loses ticks where the clock moves by half an hour.
//
// What a schedule means in words ([Schedule.Describe]), and what a change of the
// clock does to one tick ([Schedule.ClockChange]), is said here too, from the same
// values that the ticks come from.
//
// docs/schedules.md is this package as its users see it.
package schedule
