// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule turns a cron expression and a time zone into ticks: the
// instants at which something is due. It reads no clock, and what it keeps of its last
// search changes no answer: the same arguments always give the same result.
//
// Ticks are computed in two steps. The expression is a calendar of wall clock
// times, and go-cron finds the next or previous one on a clock that never changes
// (UTC). This package then applies the zone's clock changes, from the zone's
// offsets: see [Schedule.Next]. go-cron's own support for zones is not used: it
// runs a fixed time twice in the autumn overlap, and loses ticks where the clock
// moves by half an hour.
//
// The package also describes a schedule in words ([Schedule.Describe]), and how a
// clock change affects a tick ([Schedule.ClockChange]), from the same values that
// the ticks are computed from.
//
// docs/schedules.md is the documentation for users.
package schedule
