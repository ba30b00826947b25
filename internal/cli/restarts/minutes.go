// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// minuteTable is a table with a row for each minute in which restarts start. On a terminal, each
// row has a bar, whose length shows the number of starts.
type minuteTable struct {
	term.Table
	greatest int
	now      time.Time
	local    *time.Location
	terminal bool
	lastDay  string
}

// newMinuteTable returns a minuteTable without rows. The bar of a minute with `greatest` starts has
// the full length. more lists the columns after the number of starts.
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

// add appends a row for a minute with the given number of starts. more contains the cells of the
// additional columns.
func (t *minuteTable) add(minute time.Time, starts int, more ...term.Cell) {
	day := minute.In(t.local).Format("Mon 2 Jan")
	shown := day
	if t.terminal && day == t.lastDay {
		shown = "" // In a file or pipe, every row has the date, so that programs can process rows separately.
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
