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

// Calendar lists future restarts by minute, and the ticks (scheduled times) that will be missed or
// skipped.
type Calendar struct {
	Minutes  []Minute
	Unlisted int      // number of starts that are counted in Minutes but not listed individually
	Problems []string // errors in schedules that could not be parsed
	// UnderWay lists the restarts that are in progress when the calendar begins.
	UnderWay []Start
}

// Minute lists the restarts that start in the same minute.
type Minute struct {
	Time   time.Time `json:"time"` // beginning of the minute
	Count  int       `json:"count"`
	Starts []Start   `json:"starts"` // either all starts in the minute, or none if there are too many, see MostListed
	// NotStarted lists the ticks (scheduled times) that are due in the minute, but will be missed
	// or skipped.
	NotStarted []Start `json:"notStarted,omitempty"`
}

// Start is a future start of a restart, or a tick (scheduled time) at which no restart will start.
type Start struct {
	// Context is the cluster's kubeconfig context. It is empty unless the calendar covers several
	// clusters.
	Context   string    `json:"context,omitempty"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Target    string    `json:"target"`
	Tick      time.Time `json:"tick"`
	Start     time.Time `json:"start,omitzero"`
	// OffsetSeconds is the delay between the tick and the start, chosen within the
	// ScheduledRestart's spread.
	OffsetSeconds int64 `json:"offsetSeconds"`
	// Outcome and Reason explain why no restart will start for the tick. They are empty if a
	// restart will start.
	Outcome tidekeeperv1.Outcome `json:"outcome,omitempty"`
	Reason  string               `json:"reason,omitempty"`
	// EarlierTicks is the number of earlier ticks with the same outcome that this entry also
	// represents.
	EarlierTicks int `json:"earlierTicks,omitempty"`
}

// Of returns a copy of the calendar's minute that contains only the entries of the given cluster.
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

// MostListed is the maximum number of starts that a calendar lists individually; it only counts the
// rest. The limit bounds memory, because tenants control the number of starts by their schedules.
const MostListed = 100_000

// Planner computes future starts from schedules and restart windows, without regard to the restart
// budget, Freezes and workloads. It is used instead of [CalendarOf] if there are too many starts to
// simulate, because it stores only a few fields of each ScheduledRestart. It ignores ticks
// (scheduled times of restarts) that are already due and waiting.
type Planner struct {
	now, until time.Time
	// known caches parsed schedules, because many ScheduledRestarts have the same schedule.
	known    map[timetable]*schedule.Schedule
	members  map[timetable][]planned
	problems []string
}

type timetable struct{ expression, zone string }

// planned holds the fields of a ScheduledRestart that determine when its restarts start.
type planned struct {
	namespace, name, target string
	offset, deadline        time.Duration
	windows                 schedule.Windows
}

// NewPlanner returns a Planner for the period from now to until.
func NewPlanner(now, until time.Time) *Planner {
	return &Planner{now: now, until: until, known: map[timetable]*schedule.Schedule{}, members: map[timetable][]planned{}}
}

// Add adds a ScheduledRestart. It ignores a ScheduledRestart that is suspended, stopped by
// failures, being deleted, or without a schedule.
func (p *Planner) Add(r *tidekeeperv1.ScheduledRestart) {
	if r.Spec.Suspend || StoppedByFailures(r) || !r.DeletionTimestamp.IsZero() {
		return
	}
	q := timetable{string(r.Spec.GetSchedule()), r.Spec.TimeZone}
	if q.expression == "" {
		return // A restart without a schedule is triggered by the pods' age or a configuration change.
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

// Count returns the number of starts in the Planner's period.
func (p *Planner) Count(ctx context.Context) (starts int) {
	p.each(ctx, p.until, func(*planned, time.Time, time.Time) { starts++ })
	return starts
}

// Calendar counts the starts in each minute. It lists the individual starts only for the first
// minutes, and at most mostListed starts in total. If ctx is cancelled, it stops early.
func (p *Planner) Calendar(ctx context.Context, mostListed int) Calendar {
	begin := p.now.Truncate(time.Minute)
	minuteOf := func(at time.Time) int { return int(at.Sub(begin) / time.Minute) }
	counts := make([]int, minuteOf(p.until)+1)
	p.each(ctx, p.until, func(_ *planned, _, at time.Time) { counts[minuteOf(at)]++ })

	c := Calendar{Minutes: []Minute{}, Problems: slices.Sorted(slices.Values(p.problems))}
	place := make([]int, len(counts)) // index of each minute in c.Minutes
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

// each calls do for every start that is after p.now and not after until.
func (p *Planner) each(ctx context.Context, until time.Time, do func(r *planned, tick, at time.Time)) {
	// longestSpread is the maximum delay between a tick and its start: one day of spread, and one
	// day of waiting for a window.
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

// start returns the time at which the restart for a tick (scheduled time) starts. It returns false
// if no restart window opens before the tick's deadline.
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
