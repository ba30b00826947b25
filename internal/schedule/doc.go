// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule computes the ticks of a cron expression in a time zone. A tick is an instant at
// which a restart is scheduled. Results depend only on the arguments: the package reads no clock,
// and caches only the result of the last search.
//
// Ticks are computed in two steps. First, go-cron finds the next or previous matching wall clock
// time, on a clock that never changes (UTC). Then this package applies the clock changes of the
// zone. See [Schedule.Next]. go-cron's own support for zones is not used, because it runs a fixed
// time twice in the autumn overlap, and loses ticks where the clock moves by half an hour.
//
// The package also describes a schedule in words ([Schedule.Describe]) and the effect of a clock
// change on a tick ([Schedule.ClockChange]), based on the same values as the ticks.
//
// docs/concepts/schedules.md is the user documentation.
package schedule
