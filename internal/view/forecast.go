// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// Unserved are ticks of the same time that are not restarted successfully, for the same
// reason.
type Unserved struct {
	Tick    time.Time
	Outcome Outcome
	// Message is that of the first of them, and Alike says that it is that of all.
	Message string
	Alike   bool
	// Ticks are of different objects, and Count includes the ticks that are recorded with
	// them.
	Ticks []forecast.Tick
	Count int
}

// waiting is shown as the outcome of a tick that is not decided at the end of a forecast.
const waiting tidekeeperv1.Outcome = "Waiting"

// UnservedIn returns the ticks of a forecast that are not restarted successfully until its
// end, in the order of their times. Restarts in progress at the end are not among them.
func UnservedIn(f *forecast.Forecast) []Unserved {
	type group struct {
		tick            time.Time
		outcome, reason string
	}
	places := map[group]int{}
	var all []Unserved
	add := func(t forecast.Tick, outcome tidekeeperv1.Outcome) {
		key := group{t.Tick, string(outcome), t.Reason}
		i, found := places[key]
		if !found {
			i = len(all)
			places[key] = i
			all = append(all, Unserved{Tick: t.Tick, Outcome: outcomeOf(tidekeeperv1.RestartRecord{Outcome: outcome, Reason: t.Reason}), Message: t.Message, Alike: true})
		}
		u := &all[i]
		u.Ticks = append(u.Ticks, t)
		u.Count += 1 + t.EarlierTicks
		u.Alike = u.Alike && u.Message == t.Message
	}
	for _, t := range f.Started {
		if t.Outcome != "" && t.Outcome != tidekeeperv1.OutcomeSucceeded {
			add(t, t.Outcome)
		}
	}
	for _, t := range f.NotStarted {
		add(t, t.Outcome)
	}
	for _, t := range f.Waiting {
		add(t, waiting)
	}
	slices.SortStableFunc(all, func(a, b Unserved) int { return a.Tick.Compare(b.Tick) })
	return all
}
