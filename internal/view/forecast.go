// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// Unserved is a group of ticks (scheduled times) with the same outcome and reason that do not lead
// to a successful restart. It contains all such ticks of a ScheduledRestart, and of other
// ScheduledRestarts whose ticks are due at the same times.
type Unserved struct {
	// First and Last are the scheduled times of the group's first and last tick.
	First, Last time.Time
	Outcome     Outcome
	// Message is the message of the group's first tick. Alike is set if all ticks have the same
	// message.
	Message string
	Alike   bool
	// Restarts lists the first tick of each ScheduledRestart in the group. Count is the total
	// number of ticks.
	Restarts []forecast.Tick
	Count    int
	// Waiting is the number of additional ticks of the group's ScheduledRestarts that still wait at
	// the end of the forecast for the same reason.
	Waiting int
	// All is set if the ScheduledRestarts in the group have no other ticks in the forecast.
	All bool
}

// CountText formats the number of ticks in the group, such as "all 724, 1 waiting".
func (u *Unserved) CountText() string {
	text := strconv.Itoa(u.Count)
	if u.All && u.Count > len(u.Restarts) {
		text = "all " + text
	}
	if u.Waiting > 0 {
		text += fmt.Sprintf(", %d waiting", u.Waiting)
	}
	return text
}

// waiting is the outcome to show for a tick (scheduled time) that still waits at the end of the
// forecast.
const waiting tidekeeperv1.Outcome = "Waiting"

// restartKey identifies a ScheduledRestart.
type restartKey struct{ namespace, name string }

// unservedKey identifies a ScheduledRestart's ticks with the same outcome and reason.
type unservedKey struct {
	restartKey
	outcome, reason string
}

// unservedGroup collects ticks with the same [unservedKey].
type unservedGroup struct {
	Unserved
	key   unservedKey
	times []int64 // pairs of a scheduled time in Unix seconds and the number of ticks that the forecast combines in this entry
}

// UnservedIn returns the ticks (scheduled times) that do not lead to a successful restart within
// the forecast, in groups ordered by their first tick. It leaves out restarts that are still in
// progress at the end of the forecast.
func UnservedIn(f *forecast.Forecast) []Unserved {
	var groups []*unservedGroup
	places, ticks := map[unservedKey]*unservedGroup{}, map[restartKey]int{}
	add := func(t forecast.Tick, outcome tidekeeperv1.Outcome) {
		of := restartKey{t.Namespace, t.Name}
		key := unservedKey{of, string(outcome), t.Reason}
		n := 1 + t.EarlierTicks
		ticks[of] += n
		if outcome == "" || outcome == tidekeeperv1.OutcomeSucceeded {
			return
		}
		g := places[key]
		if g == nil {
			g = &unservedGroup{key: key, Unserved: Unserved{
				First: t.Tick, Outcome: outcomeOf(tidekeeperv1.RestartRecord{Outcome: outcome, Reason: t.Reason}), Message: t.Message, Alike: true, Restarts: []forecast.Tick{t},
			}}
			places[key] = g
			groups = append(groups, g)
		}
		g.Last, g.Count, g.Alike = t.Tick, g.Count+n, g.Alike && g.Message == t.Message
		g.times = append(g.times, t.Tick.Unix(), int64(n))
	}
	for _, t := range f.Started {
		add(t, t.Outcome)
	}
	for _, t := range f.NotStarted {
		add(t, t.Outcome)
	}
	for _, t := range f.Waiting {
		of, n := restartKey{t.Namespace, t.Name}, 1+t.EarlierTicks
		if missed := places[unservedKey{of, string(tidekeeperv1.OutcomeMissed), t.Reason}]; missed != nil {
			missed.Waiting += n
			ticks[of] += n
			continue
		}
		add(t, waiting)
	}
	for _, g := range groups {
		g.All = f.Summary.Unlisted == 0 && g.Count+g.Waiting == ticks[g.key.restartKey]
	}
	return mergeUnserved(groups)
}

// mergeUnserved merges the groups of ScheduledRestarts that miss the same ticks for the same
// reason, such as hourly restarts that exceed the restart budget.
func mergeUnserved(groups []*unservedGroup) []Unserved {
	places := map[string]int{}
	var all []Unserved
	for _, g := range groups {
		alike := fmt.Sprint(g.key.outcome, "/", g.key.reason, g.All, g.Waiting, g.times)
		i, found := places[alike]
		if !found {
			places[alike] = len(all)
			all = append(all, g.Unserved)
			continue
		}
		u := &all[i]
		u.Restarts = append(u.Restarts, g.Restarts...)
		u.Count += g.Count
		u.Waiting += g.Waiting
		u.Alike = u.Alike && g.Alike && u.Message == g.Message
	}
	slices.SortStableFunc(all, func(a, b Unserved) int { return a.First.Compare(b.First) })
	return all
}
