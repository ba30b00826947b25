// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule computes the ticks of a cron expression in a time zone: the instants at
// which a restart is due. It reads no clock, and its cache of the last search changes no
// result: the same arguments always give the same result.
//
// Ticks are computed in two steps. The expression is a calendar of wall clock times, in which
// go-cron finds the next or previous time on a clock that never changes (UTC). This package
// then applies the clock changes of the zone: see [Schedule.Next]. go-cron's own support for
// zones is not used: it runs a fixed time twice in the autumn overlap, and loses ticks where
// the clock moves by half an hour.
//
// The package also describes a schedule in words ([Schedule.Describe]), and the effect of a
// clock change on a tick ([Schedule.ClockChange]), from the same values as the ticks.
//
// docs/concepts/schedules.md is the documentation for users.
package schedule
