// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

// leastName is the minimum width to which a column of names is cut.
const leastName = 8

// Layout holds a table's column widths, and the reductions that fit the table on a screen.
type Layout struct {
	bar     int  // full length of a bar; 0 means no bars
	short   bool // set if cells show their Short text
	dropped []bool
	widths  []int
}

// Layout returns the table's layout for a screen. If the table continues earlier rows, previous is
// the layout of these rows. Columns that are dropped in previous stay dropped, and no column
// becomes narrower. Otherwise, previous is nil.
//
// On a narrow terminal, the table is reduced in this order: sentences are cut, bars become shorter
// and disappear, cells show their short texts, columns are dropped, and names are cut. Numbers and
// times are never cut. If they do not fit, the terminal wraps the lines.
func (t *Table) Layout(s Screen, previous *Layout) *Layout {
	l := &Layout{dropped: make([]bool, len(t.Columns))}
	bars := append(t.Bars[:len(t.Bars):len(t.Bars)], 0)
	if !s.Terminal {
		bars = []int{0}
	}
	if previous != nil {
		l.short = previous.short
		copy(l.dropped, previous.dropped)
		bars = []int{previous.bar}
	}
	for _, bar := range bars {
		l.bar = bar
		if t.measure(l, s, previous); t.fits(l, s) {
			break
		}
	}
	if previous == nil && !t.fits(l, s) {
		l.short = true
		t.measure(l, s, previous)
	}
	for previous == nil && !t.fits(l, s) && t.dropOne(l) {
	}
	if s.Width > 0 {
		t.cut(l, s.Width, func(c Column) int { return c.Text })
		t.cut(l, s.Width, func(c Column) int {
			if !c.Name {
				return 0
			}
			return max(leastName, c.Least)
		})
	}
	return l
}

// measure sets each column's width to the width of its widest cell, but at least to the minimum
// width and the width in the previous layout.
func (t *Table) measure(l *Layout, s Screen, previous *Layout) {
	l.widths = make([]int, len(t.Columns))
	for i, c := range t.Columns {
		l.widths[i] = c.Least
		if previous != nil {
			l.widths[i] = max(l.widths[i], previous.widths[i])
		}
	}
	for _, row := range t.lines() {
		for i, c := range row {
			if !c.Span {
				l.widths[i] = max(l.widths[i], DisplayWidth(c.show(l, s)))
			}
		}
	}
}

// fits reports whether the table fits on the screen if columns of free text, such as messages, are
// cut to their minimum widths, and no other column is cut.
func (t *Table) fits(l *Layout, s Screen) bool {
	if s.Width <= 0 {
		return true
	}
	total := -gap
	for i, c := range t.Columns {
		switch {
		case l.dropped[i]:
		case c.Text > 0:
			total += min(l.widths[i], c.Text) + gap
		default:
			total += l.widths[i] + gap
		}
	}
	return total <= s.Width
}

// dropOne drops the column with the highest Drop rank. It returns false if no column can be
// dropped.
func (t *Table) dropOne(l *Layout) bool {
	worst := -1
	for i, c := range t.Columns {
		if c.Drop > 0 && !l.dropped[i] && (worst < 0 || c.Drop > t.Columns[worst].Drop) {
			worst = i
		}
	}
	if worst < 0 {
		return false
	}
	l.dropped[worst] = true
	return true
}

// cut narrows the widest columns until the table fits into the given width. The function least
// returns a column's minimum width; 0 means that the column must not be cut.
func (t *Table) cut(l *Layout, width int, least func(Column) int) {
	total := -gap
	for i := range t.Columns {
		if !l.dropped[i] {
			total += l.widths[i] + gap
		}
	}
	for ; total > width; total-- {
		widest := -1
		for i, c := range t.Columns {
			if n := least(c); !l.dropped[i] && n > 0 && l.widths[i] > n && (widest < 0 || l.widths[i] >= l.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		l.widths[widest]--
	}
}
