// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
)

// stopped lists the reasons for which a schedule misses all of its ticks (scheduled times). A
// calendar omits ticks that are missed for these reasons.
var stopped = []string{tidekeeperv1.ReasonSuspended, tidekeeperv1.ReasonFailureLimit, tidekeeperv1.ReasonInvalidSchedule}

// CalendarOf returns the calendar of a forecast: the future starts, and the ticks (scheduled times)
// that will be missed or skipped. offsets holds the delay between the ticks and the starts of each
// ScheduledRestart. underWay holds the tick of each restart in progress, which may have a start
// time in the future if the manager's clock is ahead of the local clock. The keys of both maps are
// namespace/name.
func CalendarOf(f *forecast.Forecast, offsets map[string]time.Duration, underWay map[string]time.Time) Calendar {
	c := Calendar{Minutes: []Minute{}, Problems: slices.Sorted(slices.Values(f.Problems)), Unlisted: f.Summary.Unlisted}
	starts := func(t *forecast.Tick) Start {
		s := Start{Namespace: t.Namespace, Name: t.Name, Target: t.Target, Tick: t.Tick, Start: t.Start}
		if t.Trigger == tidekeeperv1.TriggerSchedule {
			s.OffsetSeconds = int64(offsets[t.Namespace+"/"+t.Name] / time.Second)
		}
		return s
	}
	notStarted := func(t *forecast.Tick) {
		s := starts(t)
		s.Outcome, s.Reason, s.EarlierTicks = t.Outcome, t.Reason, t.EarlierTicks
		m := c.minute(t.Tick.Add(time.Duration(s.OffsetSeconds) * time.Second))
		m.NotStarted = append(m.NotStarted, s)
	}
	for _, m := range f.Minutes {
		c.minute(m.Time).Count = m.Started
	}
	for i := range f.Started {
		switch t := &f.Started[i]; {
		case t.Outcome == tidekeeperv1.OutcomeMissed || t.Outcome == tidekeeperv1.OutcomeSkipped:
			c.minute(t.Start).Count--
			notStarted(t)
		case !underWay[t.Namespace+"/"+t.Name].Equal(t.Tick):
			m := c.minute(t.Start)
			m.Starts = append(m.Starts, starts(t))
		default:
			c.minute(t.Start).Count--
			c.UnderWay = append(c.UnderWay, starts(t))
		}
	}
	for i := range f.NotStarted {
		if t := &f.NotStarted[i]; !slices.Contains(stopped, t.Reason) {
			notStarted(t)
		}
	}
	c.tidy()
	return c
}

// minute returns the calendar's entry for the minute that contains the given time. It adds the
// entry if necessary.
func (c *Calendar) minute(of time.Time) *Minute {
	of = of.Truncate(time.Minute)
	i, found := slices.BinarySearchFunc(c.Minutes, of, func(m Minute, of time.Time) int { return m.Time.Compare(of) })
	if !found {
		c.Minutes = slices.Insert(c.Minutes, i, Minute{Time: of, Starts: []Start{}})
	}
	return &c.Minutes[i]
}

// tidy removes empty minutes, and sorts the starts within each minute. If only some of a minute's
// starts are listed, it removes the incomplete list and adds its length to Unlisted.
func (c *Calendar) tidy() {
	c.Minutes = slices.DeleteFunc(c.Minutes, func(m Minute) bool { return m.Count == 0 && len(m.NotStarted) == 0 })
	for i := range c.Minutes {
		m := &c.Minutes[i]
		if len(m.Starts) < m.Count {
			c.Unlisted += len(m.Starts)
			m.Starts = []Start{}
		}
		for _, list := range [][]Start{m.Starts, m.NotStarted} {
			slices.SortFunc(list, func(a, b Start) int { return compareStarts(&a, &b) })
		}
	}
}

// compareStarts orders starts by start time, then by context, namespace, name and tick.
func compareStarts(a, b *Start) int {
	return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Context, b.Context), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), a.Tick.Compare(b.Tick))
}

// Join merges another cluster's calendar into c. It sets the Context of the added starts to
// cluster, the kubeconfig context.
func (c *Calendar) Join(cluster string, other Calendar) {
	in := func(starts []Start) []Start {
		for i := range starts {
			starts[i].Context = cluster
		}
		return starts
	}
	for _, m := range other.Minutes {
		mine := c.minute(m.Time)
		mine.Count += m.Count
		mine.Starts, mine.NotStarted = append(mine.Starts, in(m.Starts)...), append(mine.NotStarted, in(m.NotStarted)...)
	}
	c.UnderWay = append(c.UnderWay, in(other.UnderWay)...)
	for _, problem := range other.Problems {
		c.Problems = append(c.Problems, cluster+": "+problem)
	}
	slices.Sort(c.Problems)
	c.Unlisted += other.Unlisted
	c.tidy()
}
