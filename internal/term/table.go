// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Table is text in columns, as wide as they are on the screen: a Chinese
// character takes two columns, a combining character none.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	// Bars are the lengths of a full bar, the longest first. The table takes the
	// longest that fits.
	Bars []int
	// NoHeader leaves out the header.
	NoHeader bool
}

// Column says how a column gives way when a terminal is too narrow for all of
// them. The zero value never does.
type Column struct {
	Header string
	// Text is a column of sentences: it is cut first, but not below this width.
	Text int
	// Drop is when the column is left out: the highest first; 0 never.
	Drop int
	// Name is a column of names: when nothing else helps, it is cut.
	Name bool
	// Least is how wide the column is at least.
	Least int
}

// Cell is a text, perhaps with a color and a bar before it.
type Cell struct {
	Text  string
	Color Color
	Bar   *Bar
	// BarText is the width of the text behind a bar, to which it is aligned.
	BarText int
	// Short is shown instead of the text where that is too long.
	Short string
	// Span lets the text go on over the columns behind it, up to the end of the line. It is the
	// last cell of its row.
	Span bool
}

// Text returns a cell without a color.
func Text(text string) Cell { return Cell{Text: text} }

// Painted returns a cell with a color.
func Painted(c Color, text string) Cell { return Cell{Text: text, Color: c} }

// gap is the blanks between two columns.
const gap = 3

// WriteTo prints the table. On a terminal that is too narrow it gives way, see
// [Column]; elsewhere nothing is cut.
func (t *Table) WriteTo(out io.Writer, s Screen) error {
	return t.WriteLayout(out, s, t.Layout(s, nil))
}

// WriteLayout prints the table in a layout, so that rows that are printed later
// stand below the columns printed before.
func (t *Table) WriteLayout(out io.Writer, s Screen, l *Layout) error {
	var text strings.Builder
	for _, row := range t.lines() {
		pending, begin := 0, 0 // blanks go before a cell, so that no line ends with them
		for i, c := range row {
			if l.dropped[i] {
				continue
			}
			shown, room := c.show(l, s), l.widths[i]
			if c.Span {
				room = max(room, s.Width-begin)
			}
			begin += l.widths[i] + gap
			if s.Width > 0 {
				shown = truncate(shown, room, s.ASCII)
			}
			if shown != "" {
				text.WriteString(strings.Repeat(" ", pending))
				text.WriteString(s.Paint(c.Color, shown))
				pending = 0
			}
			pending += l.widths[i] - DisplayWidth(shown) + gap
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// show is the text of a cell in a layout.
func (c Cell) show(l *Layout, s Screen) string {
	text := c.Text
	if l.short && c.Short != "" {
		text = c.Short
	}
	text = Printable(text)
	if c.Bar == nil || l.bar == 0 {
		return text
	}
	drawn := c.Bar.draw(l.bar, s.ASCII)
	if text != "" {
		drawn += " " + strings.Repeat(" ", max(0, c.BarText-DisplayWidth(text))) + text
	}
	return drawn
}

// lines are the rows with the header, if it is to be shown.
func (t *Table) lines() [][]Cell {
	if t.NoHeader {
		return t.Rows
	}
	header := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		header[i] = Text(c.Header)
	}
	return append([][]Cell{header}, t.Rows...)
}

// width measures characters the same way in every locale.
var width = &runewidth.Condition{}

// DisplayWidth returns how many columns of the screen a text takes.
func DisplayWidth(text string) int { return width.StringWidth(text) }

// Truncate shortens a text to a number of columns, and marks where it did.
func (s Screen) Truncate(text string, columns int) string { return truncate(text, columns, s.ASCII) }

func truncate(text string, columns int, ascii bool) string {
	if ascii {
		return width.Truncate(text, columns, "...")
	}
	return width.Truncate(text, columns, "…")
}

// Printable removes characters that would move the cursor or change the terminal: messages
// come from the cluster, and any tenant may have written them.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d':
			return -1
		default:
			return r
		}
	}, text)
}

// OneLine joins the lines of a text.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Wrap breaks a text into lines of at most that many columns, between words.
func Wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(Printable(text)) {
		switch {
		case line == "":
			line = word
		case DisplayWidth(line)+1+DisplayWidth(word) <= columns:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
