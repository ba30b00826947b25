// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// The measures of a strip: columns in 960 units, starts above a base line, what is not
// restarted below it.
const (
	stripColumns = 96
	stripWidth   = 960
	stripBase    = 72
	stripUp      = 66
	stripDown    = 22
)

// strip is the coming time in columns.
type strip struct {
	Columns []column
	Hours   []hour
	// Most is how many starts the highest column has, and Each how long a column is.
	Most  int
	Each  string
	Title string
	// Freezes are when a freeze is in force, in units.
	Freezes []freezeSpan
}

// freezeSpan is the part of a strip in which a freeze is in force.
type freezeSpan struct {
	X, Width int64
	Text     string
}

// addFreezes adds the freezes of any namespace, each once.
func (s *strip) addFreezes(byNamespace map[string][]period.Period, f *forecast.Forecast, local *time.Location) {
	seen := map[string]bool{}
	unit := func(t time.Time) int64 {
		return min(stripWidth, max(0, int64(stripWidth*t.Sub(f.From).Seconds()/f.Until.Sub(f.From).Seconds())))
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		for _, p := range byNamespace[namespace] {
			if seen[p.Name] || !p.From.Before(f.Until) {
				continue
			}
			seen[p.Name] = true
			x := unit(p.From)
			text := p.Name + ", " + term.Moment(p.From, f.From, local) + " until " + term.Moment(p.Until, f.From, local)
			if p.Reason != "" {
				text += ": " + p.Reason
			}
			s.Freezes = append(s.Freezes, freezeSpan{x, max(2, unit(p.Until)-x), text})
		}
	}
}

// column is what happens in a part of the time.
type column struct {
	X, Width             int
	Started, Waiting     int // above the base line, in units
	Missed               int // below it
	Title                string
	Starts, Waits, Miss  int
	StartedY, WaitY, Top int
}

// hour is a label below the strip.
type hour struct{ Text string }

// stripOf returns the strip of a forecast.
func stripOf(f *forecast.Forecast, freezes map[string][]period.Period, local *time.Location) *strip {
	span := f.Until.Sub(f.From)
	each := span / stripColumns
	s := &strip{Columns: make([]column, stripColumns), Each: each.String()}
	if each%time.Hour == 0 {
		s.Each = fmt.Sprint(int(each.Hours()), "h")
	} else if each%time.Minute == 0 {
		s.Each = fmt.Sprint(int(each.Minutes()), "m")
	}
	at := func(t time.Time) *column {
		return &s.Columns[min(max(0, int(t.Sub(f.From)/each)), stripColumns-1)]
	}
	for _, m := range f.Minutes {
		c := at(m.Time)
		c.Starts += m.Started
		c.Waits = max(c.Waits, m.Waiting)
	}
	for _, t := range f.NotStarted {
		at(t.Tick).Miss += 1 + t.EarlierTicks
	}
	missed := 0
	for i := range s.Columns {
		s.Most = max(s.Most, s.Columns[i].Starts, s.Columns[i].Waits)
		missed = max(missed, s.Columns[i].Miss)
	}
	starts, misses := 0, 0
	for i := range s.Columns {
		c := &s.Columns[i]
		c.X, c.Width = i*stripWidth/stripColumns, stripWidth/stripColumns-2
		c.Started, c.Waiting, c.Missed = height(c.Starts, s.Most, stripUp), height(c.Waits, s.Most, stripUp), height(c.Miss, missed, stripDown)
		c.StartedY, c.WaitY = stripBase-c.Started, stripBase-c.Waiting
		c.Title = fmt.Sprintf("%s: %s, %d waiting, %d missed or skipped", term.Moment(f.From.Add(time.Duration(i)*each), f.From, local), plural(c.Starts, "start"), c.Waits, c.Miss)
		starts, misses = starts+c.Starts, misses+c.Miss
	}
	const labels = 8
	for i := range labels {
		t := f.From.Add(time.Duration(i) * span / labels)
		text := term.Clock(t, f.From, local)
		if span > 24*time.Hour {
			text = t.In(local).Format("Mon 15:04")
		}
		s.Hours = append(s.Hours, hour{text})
	}
	s.Title = fmt.Sprintf("the coming %s: %s, %d missed or skipped", span, plural(starts, "start"), misses)
	s.addFreezes(freezes, f, local)
	return s
}

// height is a number as a height: 0 is nothing, and all others can be seen.
func height(n, most, units int) int {
	if n == 0 {
		return 0
	}
	return max(3, n*units/most)
}

// herd is the minute in which most restarts start.
type herd struct {
	Time  string
	Count int
	Names string
	// Missed is how many ticks will be missed until the end of the forecast.
	Missed, Started int
}

// herdOf returns the greatest herd of a forecast, nil if nothing starts.
func herdOf(f *forecast.Forecast, local *time.Location) *herd {
	h := &herd{Missed: f.Summary.Missed, Started: f.Summary.Started}
	var at time.Time
	for _, m := range f.Minutes {
		if m.Started > h.Count {
			h.Count, at = m.Started, m.Time
		}
	}
	if h.Count == 0 {
		return nil
	}
	h.Time = term.ComingInZone(at, f.From, local)
	var ticks []forecast.Tick
	for _, t := range f.Started {
		if !t.Start.Before(at) && t.Start.Before(at.Add(time.Minute)) {
			ticks = append(ticks, t)
		}
	}
	h.Names = tickNames(ticks)
	return h
}

// laneSpan is how far a lane goes back, and ahead.
const laneSpan = 24 * time.Hour

// laneAxis is the time of all lanes.
type laneAxis struct {
	From, Now, Until time.Time
	local            *time.Location
}

// lane is what happened to one ScheduledRestart, and what will.
type lane struct {
	Windows []span
	Bars    []laneBar
	Title   string
}

// span is a time, in thousandths of the width.
type span struct{ X, Width int64 }

// laneBar is one tick: thin while it waited, thick while it took.
type laneBar struct {
	Wait, Take span
	Is         string // done, failed, missed, coming or active
	Title      string
}

func (a *laneAxis) x(t time.Time) int64 {
	return min(1000, max(0, int64(1000*t.Sub(a.From).Seconds()/a.Until.Sub(a.From).Seconds())))
}

func (a *laneAxis) span(from, to time.Time, least int64) span {
	x := a.x(from)
	width := max(least, a.x(to)-x)
	return span{min(x, 1000-width), width}
}

// mostLaneParts bounds how many bars and windows a lane has.
const mostLaneParts = 100

// lane returns the lane of a ScheduledRestart with its coming ticks.
func (a *laneAxis) lane(r *tidekeeperv1.ScheduledRestart, coming []forecast.Tick) *lane {
	l := &lane{Windows: a.windows(r)}
	done := 0
	for _, e := range view.HistoryOf(r, a.Now) {
		if e.Tick.Before(a.From) || len(l.Bars) >= mostLaneParts/2 {
			continue
		}
		start, end := e.Tick, e.Tick
		b := laneBar{Is: "missed", Title: e.Tick.In(a.local).Format("15:04") + " " + e.Trigger + ": " + e.Outcome.Text}
		if e.Waited != nil {
			start = e.Tick.Add(*e.Waited)
			end = start.Add(*e.Took)
			b.Title += fmt.Sprintf(", waited %s, took %s", *e.Waited, *e.Took)
			b.Is = "done"
			if e.Outcome.Severity == view.Bad {
				b.Is = "failed"
			} else if e.Outcome.Severity != view.Good {
				b.Is = "active"
			}
		}
		b.Wait, b.Take = a.span(e.Tick, start, 0), a.span(start, end, 5)
		l.Bars = append(l.Bars, b)
		done++
	}
	for _, t := range coming {
		if len(l.Bars) >= mostLaneParts || t.Tick.After(a.Until) {
			break
		}
		b := laneBar{Is: "coming", Title: t.Tick.In(a.local).Format("15:04") + " coming"}
		if t.Start.IsZero() {
			b.Is, b.Title = "missed", b.Title+": "+string(t.Outcome)+" "+t.Reason
			b.Take = a.span(t.Tick, t.Tick, 5)
		} else {
			if t.Start.Before(a.Now) {
				continue // It is in the history as active.
			}
			b.Wait, b.Take = a.span(t.Tick, t.Start, 0), a.span(t.Start, t.Completion, 5)
		}
		l.Bars = append(l.Bars, b)
	}
	l.Title = fmt.Sprintf("%s/%s: %s in the last 24 h, %d coming", r.Namespace, r.Name, plural(done, "tick"), len(l.Bars)-done)
	return l
}

// windows returns when the windows of a ScheduledRestart are open; none if they always are.
func (a *laneAxis) windows(r *tidekeeperv1.ScheduledRestart) []span {
	_, windows, err := decision.ParseSchedule(&r.Spec)
	if err != nil || len(windows) == 0 {
		return nil
	}
	var spans []span
	for at := a.From; len(spans) < mostLaneParts; {
		opens, ok := windows.OpensAt(at)
		if !ok || opens.After(a.Until) {
			break
		}
		closes, open := windows.ClosesAt(opens)
		if !open || closes.IsZero() {
			closes = a.Until
		}
		spans = append(spans, a.span(opens, closes, 1))
		if !closes.After(at) {
			break
		}
		at = closes
	}
	return spans
}
