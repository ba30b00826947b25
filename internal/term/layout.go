// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

// leastName is the minimum width of a column of names.
const leastName = 8

// Layout is the layout of a table for a screen.
type Layout struct {
	bar     int  // full length of a bar; 0 means no bars
	short   bool // cells show their short texts
	dropped []bool
	widths  []int
}

// Layout returns a layout of the table for a screen. For rows that continue a previous table, it keeps the
// dropped columns of that layout, and makes no column narrower.
//
// On a narrow terminal, a table is reduced in this order: sentences are cut, bars become shorter and
// disappear, cells show their short texts, columns are dropped, names are cut. Numbers and times are never
// cut: if they do not fit, the terminal wraps the lines.
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

// measure sets the widths that the columns need without cuts.
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

// fits reports whether the table fits if sentences are cut.
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

// dropOne drops the least important column, and reports whether there was one to drop.
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

// cut makes the widest columns narrower until the table fits, but no column narrower than least returns for
// it; a column with 0 is not cut.
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
