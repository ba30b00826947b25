// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// Explanation describes a schedule in words, and lists its next ticks (scheduled times).
type Explanation struct {
	Words string `json:"words"`
	Zone  string `json:"zone"`
	Ticks []Tick `json:"ticks"`
}

// Tick is a scheduled time of a restart, in the time zone of the schedule.
type Tick struct {
	Time time.Time `json:"time"`
	// ClockChange describes how a daylight saving time change affects the tick. It is empty if
	// there is no effect.
	ClockChange string `json:"clockChange,omitempty"`
}

// Explain describes a schedule in words. It lists at most `ticks` scheduled times after the given
// time.
func Explain(s *schedule.Schedule, after time.Time, ticks int) Explanation {
	e := Explanation{Words: s.Describe(), Zone: s.Zone(), Ticks: []Tick{}}
	before := after
	for range ticks {
		tick, ok := s.Next(before)
		if !ok {
			break
		}
		e.Ticks = append(e.Ticks, Tick{Time: tick.In(s.Location()), ClockChange: s.ClockChange(tick, before)})
		before = tick
	}
	return e
}
