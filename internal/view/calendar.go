// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// Calendar is the restarts that will be started, and the ticks that will not.
type Calendar struct {
	Minutes  []Minute
	Unlisted int      // how many starts are counted, and not listed
	Problems []string // schedules that cannot be used
	// UnderWay are the restarts that are in progress at its beginning.
	UnderWay []Start
}

// Minute is the restarts that start in the same minute.
type Minute struct {
	Time   time.Time `json:"time"` // its beginning
	Count  int       `json:"count"`
	Starts []Start   `json:"starts"` // all, or none: see mostListed
	// NotStarted are the ticks that are due in it and will be missed or skipped.
	NotStarted []Start `json:"notStarted,omitempty"`
}

// Start is the start of a restart.
type Start struct {
	// Context is that of the cluster, in the calendar of several.
	Context   string    `json:"context,omitempty"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Target    string    `json:"target"`
	Tick      time.Time `json:"tick"`
	Start     time.Time `json:"start,omitzero"`
	// Its place in the spread.
	OffsetSeconds int64 `json:"offsetSeconds"`
	// Outcome and Reason explain a tick that is not started.
	Outcome tidekeeperv1.Outcome `json:"outcome,omitempty"`
	Reason  string               `json:"reason,omitempty"`
	// EarlierTicks is how many ticks before it have the same end.
	EarlierTicks int `json:"earlierTicks,omitempty"`
}

// Of returns the starts of a minute in a cluster, of several.
func (m *Minute) Of(cluster string) Minute {
	of := Minute{Time: m.Time, Starts: []Start{}}
	for _, start := range m.Starts {
		if start.Context == cluster {
			of.Starts = append(of.Starts, start)
		}
	}
	for _, start := range m.NotStarted {
		if start.Context == cluster {
			of.NotStarted = append(of.NotStarted, start)
		}
	}
	of.Count = len(of.Starts)
	return of
}

// MostListed is how many starts are listed by name; the others are only counted.
// The number of starts is up to the tenants, the memory that this takes is not.
const MostListed = 100_000

// Planner computes from schedules alone the starts after a time and not after another, where
// there is too much to play it: see [CalendarOf]. A tick that is due already, and waits for
// something, has no time and is not in it. It keeps little of each ScheduledRestart, and a number
// for each minute.
type Planner struct {
	now, until time.Time
	// Many have the same schedule and differ only in their spread.
	known    map[timetable]*schedule.Schedule
	members  map[timetable][]planned
	problems []string
}

type timetable struct{ expression, zone string }

// planned is a ScheduledRestart whose schedule goes on.
type planned struct {
	namespace, name, target string
	offset, deadline        time.Duration
	windows                 schedule.Windows
}

// NewPlanner returns a Planner of the time after now until another.
func NewPlanner(now, until time.Time) *Planner {
	return &Planner{now: now, until: until, known: map[timetable]*schedule.Schedule{}, members: map[timetable][]planned{}}
}

// Add takes in a ScheduledRestart.
func (p *Planner) Add(r *tidekeeperv1.ScheduledRestart) {
	if r.Spec.Suspend || StoppedByFailures(r) || !r.DeletionTimestamp.IsZero() {
		return
	}
	q := timetable{string(r.Spec.GetSchedule()), r.Spec.TimeZone}
	if q.expression == "" {
		return // Its pods decide when it is restarted.
	}
	member := planned{namespace: r.Namespace, name: r.Name, target: TargetOf(r), offset: OffsetOf(r), deadline: time.Duration(r.Spec.StartingDeadlineSeconds) * time.Second}
	if p.known[q] == nil || len(r.Spec.Windows) > 0 {
		s, windows, err := decision.ParseSchedule(&r.Spec)
		if err != nil {
			p.problems = append(p.problems, fmt.Sprintf("%s/%s: %s", r.Namespace, r.Name, err))
			return
		}
		p.known[q], member.windows = s, windows
	}
	p.members[q] = append(p.members[q], member)
}

// Count returns how many starts there are.
func (p *Planner) Count(ctx context.Context) (starts int) {
	p.each(ctx, p.until, func(*planned, time.Time, time.Time) { starts++ })
	return starts
}

// Calendar counts the starts of all minutes, and lists those of the first of them,
// as many as are listed. It stops when the context ends.
func (p *Planner) Calendar(ctx context.Context, mostListed int) Calendar {
	begin := p.now.Truncate(time.Minute)
	minuteOf := func(at time.Time) int { return int(at.Sub(begin) / time.Minute) }
	counts := make([]int, minuteOf(p.until)+1)
	p.each(ctx, p.until, func(_ *planned, _, at time.Time) { counts[minuteOf(at)]++ })

	c := Calendar{Minutes: []Minute{}, Problems: slices.Sorted(slices.Values(p.problems))}
	place := make([]int, len(counts)) // of a minute among the minutes with starts
	listed, all := 0, true
	for i, count := range counts {
		if count == 0 {
			continue
		}
		all = all && listed+count <= mostListed
		place[i] = len(c.Minutes)
		m := Minute{Time: begin.Add(time.Duration(i) * time.Minute), Count: count, Starts: []Start{}}
		if all {
			listed += count
			m.Starts = make([]Start, 0, count)
		} else {
			c.Unlisted += count
		}
		c.Minutes = append(c.Minutes, m)
	}
	if listed == 0 {
		return c
	}
	last := c.Minutes[len(c.Minutes)-1].Time
	for _, m := range c.Minutes {
		if cap(m.Starts) > 0 {
			last = m.Time
		}
	}
	p.each(ctx, earlier(p.until, last.Add(time.Minute-1)), func(r *planned, tick, at time.Time) {
		m := &c.Minutes[place[minuteOf(at)]]
		m.Starts = append(m.Starts, Start{Namespace: r.namespace, Name: r.name, Target: r.target, Tick: tick, Start: at, OffsetSeconds: int64(r.offset / time.Second)})
	})
	for _, m := range c.Minutes {
		slices.SortFunc(m.Starts, func(a, b Start) int {
			return compareStarts(&a, &b)
		})
	}
	return c
}

// each calls for each start that is not after a time.
func (p *Planner) each(ctx context.Context, until time.Time, do func(r *planned, tick, at time.Time)) {
	// The longest spread, and the longest wait for a window.
	const longestSpread = 2 * 24 * time.Hour
	for q, members := range p.members {
		s := p.known[q]
		for tick, ok := s.Next(p.now.Add(-longestSpread)); ok && !tick.After(until) && ctx.Err() == nil; tick, ok = s.Next(tick) {
			for i := range members {
				if at, ok := members[i].start(tick); ok && at.After(p.now) && !at.After(until) {
					do(&members[i], tick, at)
				}
			}
		}
	}
}

// start returns when the restart for a tick can be started; never, if no window is open
// before its deadline.
func (r *planned) start(tick time.Time) (time.Time, bool) {
	due := tick.Add(r.offset)
	at, ok := r.windows.OpensAt(due)
	return at, ok && !at.After(due.Add(r.deadline))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
