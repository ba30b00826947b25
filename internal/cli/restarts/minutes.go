// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// minuteTable is a table with a line for each minute in which something starts, on a
// terminal with a bar.
type minuteTable struct {
	term.Table
	greatest int
	now      time.Time
	local    *time.Location
	terminal bool
	lastDay  string
}

// newMinuteTable returns a table of minutes in which no more starts than the greatest number,
// with more columns behind that number.
func newMinuteTable(greatest int, now time.Time, local *time.Location, s term.Screen, more ...term.Column) *minuteTable {
	columns := []term.Column{{Header: "DAY"}, {Header: "TIME (" + term.Zone(now, local) + ")"}, {Header: "STARTS"}}
	if s.Terminal {
		columns = append(columns, term.Column{Drop: 1})
	}
	return &minuteTable{
		Table:    term.Table{Bars: []int{16, 8}, Columns: append(columns, more...)},
		greatest: greatest, now: now, local: local, terminal: s.Terminal,
	}
}

// add adds a minute in which that many restarts start.
func (t *minuteTable) add(minute time.Time, starts int, more ...term.Cell) {
	day := minute.In(t.local).Format("Mon 2 Jan")
	shown := day
	if t.terminal && day == t.lastDay {
		shown = "" // for programs, each line is complete
	}
	t.lastDay = day
	row := []term.Cell{term.Text(shown), term.Text(term.Clock(minute, t.now, t.local)), term.Text(fmt.Sprint(starts))}
	if t.terminal {
		bar := term.Cell{Bar: &term.Bar{Share: float64(starts) / float64(t.greatest)}}
		if starts == t.greatest && t.greatest > 1 {
			bar.Color = term.Yellow
		}
		row = append(row, bar)
	}
	t.Rows = append(t.Rows, append(row, more...))
}
