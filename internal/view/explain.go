// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// Explanation describes a schedule in words, with its next ticks.
type Explanation struct {
	Words string `json:"words"`
	Zone  string `json:"zone"`
	Ticks []Tick `json:"ticks"`
}

// Tick is a tick of a schedule, in the time zone of the schedule.
type Tick struct {
	Time time.Time `json:"time"`
	// ClockChange describes the effect of daylight saving time on the tick.
	ClockChange string `json:"clockChange,omitempty"`
}

// Explain describes a schedule and returns its ticks after a time.
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
