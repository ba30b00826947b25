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

// Calendar has the future starts of restarts, and the ticks without a start.
type Calendar struct {
	Minutes  []Minute
	Unlisted int      // the number of starts that are counted but not listed
	Problems []string // schedules that cannot be used
	// UnderWay has the restarts that are in progress at the beginning.
	UnderWay []Start
}

// Minute has the restarts that start in the same minute.
type Minute struct {
	Time   time.Time `json:"time"` // the beginning of the minute
	Count  int       `json:"count"`
	Starts []Start   `json:"starts"` // all starts of the minute, or none, see MostListed
	// NotStarted has the ticks that are due in the minute and will be missed or skipped.
	NotStarted []Start `json:"notStarted,omitempty"`
}

// Start is the start of a restart.
type Start struct {
	// Context is the context of the cluster, in a calendar of several clusters.
	Context   string    `json:"context,omitempty"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Target    string    `json:"target"`
	Tick      time.Time `json:"tick"`
	Start     time.Time `json:"start,omitzero"`
	// OffsetSeconds is the time from the tick to the start, within the spread.
	OffsetSeconds int64 `json:"offsetSeconds"`
	// Outcome and Reason explain why a tick is not started.
	Outcome tidekeeperv1.Outcome `json:"outcome,omitempty"`
	Reason  string               `json:"reason,omitempty"`
	// EarlierTicks is the number of earlier ticks with the same outcome.
	EarlierTicks int `json:"earlierTicks,omitempty"`
}

// Of returns the starts of the minute in one of several clusters.
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

// MostListed is the maximum number of starts that are listed by name; further starts are only counted. It
// bounds the memory, as tenants control the number of starts.
const MostListed = 100_000

// Planner computes the starts in a period from schedules alone, where there are too many for a simulation,
// see [CalendarOf]. It leaves out ticks that are already due and wait. It stores little of each
// ScheduledRestart, and one number per minute.
type Planner struct {
	now, until time.Time
	// known has the parsed schedules: many objects have the same schedule and differ only in their offsets.
	known    map[timetable]*schedule.Schedule
	members  map[timetable][]planned
	problems []string
}

type timetable struct{ expression, zone string }

// planned is a ScheduledRestart with future ticks.
type planned struct {
	namespace, name, target string
	offset, deadline        time.Duration
	windows                 schedule.Windows
}

// NewPlanner returns a Planner for the period from now until another time.
func NewPlanner(now, until time.Time) *Planner {
	return &Planner{now: now, until: until, known: map[timetable]*schedule.Schedule{}, members: map[timetable][]planned{}}
}

// Add adds a ScheduledRestart.
func (p *Planner) Add(r *tidekeeperv1.ScheduledRestart) {
	if r.Spec.Suspend || StoppedByFailures(r) || !r.DeletionTimestamp.IsZero() {
		return
	}
	q := timetable{string(r.Spec.GetSchedule()), r.Spec.TimeZone}
	if q.expression == "" {
		return // Without a schedule, the pods determine when it is restarted.
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

// Count returns the number of starts.
func (p *Planner) Count(ctx context.Context) (starts int) {
	p.each(ctx, p.until, func(*planned, time.Time, time.Time) { starts++ })
	return starts
}

// Calendar counts the starts of all minutes, and lists the starts of the first minutes up to mostListed. It
// stops when the context is cancelled.
func (p *Planner) Calendar(ctx context.Context, mostListed int) Calendar {
	begin := p.now.Truncate(time.Minute)
	minuteOf := func(at time.Time) int { return int(at.Sub(begin) / time.Minute) }
	counts := make([]int, minuteOf(p.until)+1)
	p.each(ctx, p.until, func(_ *planned, _, at time.Time) { counts[minuteOf(at)]++ })

	c := Calendar{Minutes: []Minute{}, Problems: slices.Sorted(slices.Values(p.problems))}
	place := make([]int, len(counts)) // index of each minute among the minutes with starts
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

// each calls do for each start up to the given time.
func (p *Planner) each(ctx context.Context, until time.Time, do func(r *planned, tick, at time.Time)) {
	// The maximum spread plus the maximum wait for a window.
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

// start returns the time at which the restart for a tick can start; false if no window is open before its
// deadline.
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
