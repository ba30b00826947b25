// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Dimensions of a strip, the bar chart of a forecast, in SVG units. Bars for starts extend above a
// base line, and bars for missed ticks below it. The first column begins at a round time before
// now, so there is an additional column at the end.
const (
	stripColumns = 97
	stripWidth   = 970
	stripBase    = 72
	stripUp      = 66
	stripDown    = 22
)

// strip is a bar chart of a restart forecast: the starts, waiting restarts and missed ticks over
// time.
type strip struct {
	Columns []column
	Hours   []hour
	// Most is the largest number of starts or waiting restarts in a column. Each is the period that
	// a column covers.
	Most  int
	Each  string
	Title string
	// Freezes lists the periods of the Freezes to mark on the strip.
	Freezes []freezeSpan
	// Clocks describes the daylight saving time changes within the strip.
	Clocks []string
}

// freezeSpan is a Freeze's period on the strip chart, in SVG units.
type freezeSpan struct {
	X, Width int64
	Text     string
}

// addFreezes adds the period of each Freeze once, even if it applies to several namespaces.
func (s *strip) addFreezes(byNamespace map[string][]period.Period, f *forecast.Forecast, local *time.Location) {
	seen := map[string]bool{}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		for _, p := range byNamespace[namespace] {
			if seen[p.Name] || !p.From.Before(f.Until) {
				continue
			}
			seen[p.Name] = true
			x := unitOf(f, p.From)
			text := p.Name + ", " + term.Moment(p.From, f.From, local) + " until " + term.Moment(p.Until, f.From, local)
			if p.Reason != "" {
				text += ": " + p.Reason
			}
			s.Freezes = append(s.Freezes, freezeSpan{x, max(2, unitOf(f, p.Until)-x), text})
		}
	}
}

// column shows the starts, the waiting restarts and the missed ticks in a period of the forecast.
type column struct {
	X, Width         int
	Started, Waiting int // heights of bars above the base line in SVG units
	Missed           int // height of the bar below the base line in SVG units
	Title            string
	Starts, Waits    int
	// Miss is the number of ScheduledRestarts that miss or skip ticks in the period. MissedTicks is
	// the number of missed or skipped ticks, which can be large for a workload that is never
	// restarted.
	Miss, MissedTicks    int
	StartedY, WaitY, Top int
}

// hour is a time label below the strip chart, with a vertical line at the same position.
type hour struct {
	X    int64
	Text string
}

// Percent returns the horizontal position of the label as a percentage of the strip's width.
func (h hour) Percent() string { return fmt.Sprintf("%.1f%%", 100*float64(h.X)/stripWidth) }

// Anchor returns the horizontal alignment of the label. Labels near the ends of the strip are
// aligned so that they are not cut off.
func (h hour) Anchor() string {
	const edge = stripWidth * 4 / 100
	switch {
	case h.X < edge:
		return "start"
	case h.X > stripWidth-edge:
		return "end"
	}
	return "middle"
}

// hoursOf returns about eight time labels for the strip of a forecast: full hours, or dates if the
// forecast covers several days.
func hoursOf(f *forecast.Forecast, local *time.Location) []hour {
	step, format := 3, ""
	switch span := f.Until.Sub(f.From); {
	case span > 48*time.Hour:
		step, format = 24, "Mon 2 Jan"
	case span > 24*time.Hour:
		step, format = 6, "Mon 15:04"
	}
	var hours []hour
	from := f.From.In(local)
	for at := from.Add(-time.Duration(from.Minute()*60+from.Second()) * time.Second); at.Before(f.Until); at = at.Add(time.Hour) {
		if at.Before(from) || at.Hour()%step != 0 {
			continue
		}
		text := term.Clock(at, from, local)
		if format != "" {
			text = at.Format(format)
		}
		hours = append(hours, hour{unitOf(f, at), text})
	}
	return hours
}

// unitOf returns the horizontal position of a time on the strip, in SVG units.
func unitOf(f *forecast.Forecast, t time.Time) int64 {
	from, each := columnsOf(f)
	return min(stripWidth, max(0, int64(stripWidth*t.Sub(from).Seconds()/(stripColumns*each).Seconds())))
}

// columnsOf returns the beginning of the strip's first column, and the period that each column
// covers.
func columnsOf(f *forecast.Forecast) (from time.Time, each time.Duration) {
	each = f.Until.Sub(f.From) / (stripColumns - 1)
	return f.From.Truncate(min(each, time.Hour)), each
}

// stripOf returns the strip of a forecast, with the periods of the given Freezes.
func stripOf(f *forecast.Forecast, freezes map[string][]period.Period, local *time.Location) *strip {
	span := f.Until.Sub(f.From)
	from, each := columnsOf(f)
	s := &strip{Columns: make([]column, stripColumns), Each: each.String()}
	if each%time.Hour == 0 {
		s.Each = fmt.Sprint(int(each.Hours()), "h")
	} else if each%time.Minute == 0 {
		s.Each = fmt.Sprint(int(each.Minutes()), "m")
	}
	at := func(t time.Time) *column {
		return &s.Columns[min(max(0, int(t.Sub(from)/each)), stripColumns-1)]
	}
	for _, m := range f.Minutes {
		c := at(m.Time)
		c.Starts += m.Started
		c.Waits = max(c.Waits, m.Waiting)
	}
	type missing struct {
		at              *column
		namespace, name string
	}
	counted := map[missing]bool{}
	for _, t := range f.NotStarted {
		c := at(t.Tick)
		c.MissedTicks += 1 + t.EarlierTicks
		if key := (missing{c, t.Namespace, t.Name}); !counted[key] {
			counted[key] = true
			c.Miss++
		}
	}
	missed := 0
	for i := range s.Columns {
		s.Most = max(s.Most, s.Columns[i].Starts, s.Columns[i].Waits)
		missed = max(missed, s.Columns[i].Miss)
	}
	missed = max(missed, s.Most) // The bars below and above the base line have the same scale.
	starts, misses := 0, 0
	for i := range s.Columns {
		c := &s.Columns[i]
		c.X, c.Width = i*stripWidth/stripColumns, stripWidth/stripColumns-2
		c.Started, c.Waiting, c.Missed = height(c.Starts, s.Most, stripUp), height(c.Waits, s.Most, stripUp), height(c.Miss, missed, stripDown)
		c.StartedY, c.WaitY = stripBase-c.Started, stripBase-c.Waiting
		c.Title = fmt.Sprintf("%s: %s, %d waiting, %d missed or skipped", term.Moment(from.Add(time.Duration(i)*each), f.From, local), plural(c.Starts, "start"), c.Waits, c.MissedTicks)
		if c.Miss > 0 && c.Miss < c.MissedTicks {
			c.Title += " by " + plural(c.Miss, "restart")
		}
		starts, misses = starts+c.Starts, misses+c.MissedTicks
	}
	s.Hours = hoursOf(f, local)
	s.Title = fmt.Sprintf("the coming %s: %s, %d missed or skipped", span, plural(starts, "start"), misses)
	s.addFreezes(freezes, f, local)
	s.Clocks = clockChanges(f.From, f.Until, local)
	return s
}

// clockChanges describes the daylight saving time changes within a period. All columns of a strip
// cover the same duration. A repeated hour therefore has columns for both occurrences, and a
// skipped hour has no columns.
func clockChanges(from, until time.Time, local *time.Location) []string {
	var list []string
	for at := from; ; {
		_, end := at.In(local).ZoneBounds()
		if end.IsZero() || !end.Before(until) {
			return list
		}
		_, before := end.Add(-time.Second).In(local).Zone()
		_, after := end.In(local).Zone()
		if change := time.Duration(after-before) * time.Second; change != 0 {
			direction := "forward"
			if change < 0 {
				direction = "back"
			}
			list = append(list, fmt.Sprintf("The clocks go %s by %s %s", direction, view.FormatLength(change.Abs()), term.Moment(end, from, local)))
		}
		at = end
	}
}

// height returns the height of a bar that shows the number n. The number `most` has the full
// height, which is the parameter units. The bar of any number other than 0 is high enough to be
// visible.
func height(n, most, units int) int {
	if n == 0 {
		return 0
	}
	return max(3, n*units/most)
}

// herd is the minute with the most starts in a forecast.
type herd struct {
	Time  string
	Count int
	Names string
	// Missed states how many ticks (scheduled times) will be missed within the forecast, and names
	// the ScheduledRestarts of these ticks. It is "" if no tick will be missed.
	Missed string
}

// herdOf returns the busiest minute of a forecast, or nil if no restart starts.
func herdOf(f *forecast.Forecast, local *time.Location) *herd {
	h := &herd{Missed: missedText(f)}
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

// missedText states how many ticks (scheduled times) will be missed within the forecast, and names
// the ScheduledRestarts of these ticks. It returns "" if no tick will be missed.
func missedText(f *forecast.Forecast) string {
	if f.Summary.Missed == 0 {
		return ""
	}
	text := plural(f.Summary.Missed, "tick")
	of := map[string]bool{}
	for _, t := range f.NotStarted {
		if t.Outcome == tidekeeperv1.OutcomeMissed {
			of[t.Namespace+"/"+t.Name] = true
		}
	}
	switch {
	case f.Summary.Unlisted > 0 || len(of) == 0:
	case len(of) == 1:
		for name := range of {
			text += " of " + name
		}
	default:
		text += " of " + plural(len(of), "restart")
	}
	return text
}
