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

// Unserved are ticks that are not restarted successfully, with the same outcome and for the same
// reason: all such ticks of a restart, and those of other restarts that are due at the same times.
type Unserved struct {
	// First and Last are the times of the first tick and of the last.
	First, Last time.Time
	Outcome     Outcome
	// Message is the message of the first tick. Alike is set if all ticks have that message.
	Message string
	Alike   bool
	// Restarts has the first tick of each restart, and Count is how many ticks they are together.
	Restarts []forecast.Tick
	Count    int
	// Waiting is how many more ticks of them wait at the end, for the same reason.
	Waiting int
	// All reports that these restarts have no other ticks.
	All bool
}

// CountText is how many ticks these are.
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

// waiting is the outcome shown for a tick that is undecided at the end of a forecast.
const waiting tidekeeperv1.Outcome = "Waiting"

// restartKey names a ScheduledRestart.
type restartKey struct{ namespace, name string }

// unservedKey is a restart with an outcome and its reason.
type unservedKey struct {
	restartKey
	outcome, reason string
}

// unservedGroup are the ticks of an [unservedKey].
type unservedGroup struct {
	Unserved
	key   unservedKey
	times []int64 // that the ticks are due at
}

// UnservedIn returns the ticks of a forecast that are not restarted successfully until its
// end, in the order of their first times. Restarts in progress at the end are not among them.
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

// mergeUnserved puts restarts together that miss the same times for the same reason, such as those
// that a budget has no room for at an hour.
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
		u.Alike = u.Alike && g.Alike && u.Message == g.Message
	}
	slices.SortStableFunc(all, func(a, b Unserved) int { return a.First.Compare(b.First) })
	return all
}
