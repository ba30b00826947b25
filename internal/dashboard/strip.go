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

// Dimensions of a strip: its columns are 970 units wide in total, with starts above a base line and missed
// ticks below it. Columns begin at full quarters of an hour, so the first begins before now, and there is one
// more column at the end.
const (
	stripColumns = 97
	stripWidth   = 970
	stripBase    = 72
	stripUp      = 66
	stripDown    = 22
)

// strip is a bar chart of the starts and misses of a forecast over time.
type strip struct {
	Columns []column
	Hours   []hour
	// Most is the number of starts in the highest column, and Each the duration of a column.
	Most  int
	Each  string
	Title string
	// Freezes has the periods in which a freeze is in force, in units.
	Freezes []freezeSpan
	// Clocks describes changes of daylight saving time.
	Clocks []string
}

// freezeSpan is a period of a freeze on the strip.
type freezeSpan struct {
	X, Width int64
	Text     string
}

// addFreezes adds the freezes of all namespaces, without duplicates.
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

// column is a column of the strip: the starts and misses in its period.
type column struct {
	X, Width         int
	Started, Waiting int // heights above the base line, in units
	Missed           int // height below the base line
	Title            string
	Starts, Waits    int
	// Miss is how many restarts miss or skip ticks, and MissedTicks how many ticks: of a workload that
	// is never restarted there may be many.
	Miss, MissedTicks    int
	StartedY, WaitY, Top int
}

// hour is a label below the strip, with a vertical line.
type hour struct {
	X    int64
	Text string
}

// Percent returns the position of the label, and Anchor its alignment, so that labels at the ends are not cut
// off.
func (h hour) Percent() string { return fmt.Sprintf("%.1f%%", 100*float64(h.X)/stripWidth) }

// Anchor returns the alignment of the label, see [hour.Percent].
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

// hoursOf returns about eight labels: full hours, and dates if the strip is long.
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

// unitOf returns the position of a time on the strip.
func unitOf(f *forecast.Forecast, t time.Time) int64 {
	from, each := columnsOf(f)
	return min(stripWidth, max(0, int64(stripWidth*t.Sub(from).Seconds()/(stripColumns*each).Seconds())))
}

// columnsOf returns the beginning of the first column, and the duration of each column.
func columnsOf(f *forecast.Forecast) (from time.Time, each time.Duration) {
	each = f.Until.Sub(f.From) / (stripColumns - 1)
	return f.From.Truncate(min(each, time.Hour)), each
}

// stripOf returns the strip of a forecast.
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
	missed = max(missed, s.Most) // Below the line the scale is the same as above it.
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

// clockChanges describes the changes of daylight saving time within a period. All columns of a strip have the
// same duration: an hour that occurs twice has its columns twice, and a skipped hour has none.
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

// height returns the height for a number: 0 for 0, and at least a visible minimum for other numbers.
func height(n, most, units int) int {
	if n == 0 {
		return 0
	}
	return max(3, n*units/most)
}

// herd is the minute in which the most restarts start.
type herd struct {
	Time  string
	Count int
	Names string
	// Missed says how many ticks will be missed until the end of the forecast, and of which restarts; ""
	// for none.
	Missed string
}

// herdOf returns the busiest minute of a forecast, nil if no restart starts.
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

// missedText says how many ticks will be missed, and of which restarts; "" for none.
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
