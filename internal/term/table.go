// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Table is a table of text. Widths are in columns of the screen: a Chinese character takes two, a combining
// character none.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	// Bars are the possible full lengths of a bar, longest first. The table uses the longest that fits.
	Bars []int
	// NoHeader leaves out the header.
	NoHeader bool
}

// Column describes how a column is reduced if the terminal is too narrow for the table. The zero value is
// never reduced.
type Column struct {
	Header string
	// Text is set for a column of sentences: it is cut first, down to this width.
	Text int
	// Drop is the order in which columns are dropped: the highest first; 0 means never.
	Drop int
	// Name is set for a column of names, which is cut last.
	Name bool
	// Least is the minimum width of the column.
	Least int
}

// Cell is a text with an optional color and an optional bar before it.
type Cell struct {
	Text  string
	Color Color
	Bar   *Bar
	// BarText is the width of the text after a bar, for alignment.
	BarText int
	// Short replaces the text where there is not enough space.
	Short string
	// Span lets the text extend over the columns to its right. It must be the last cell of its row.
	Span bool
}

// Text returns a cell without a color.
func Text(text string) Cell { return Cell{Text: text} }

// Painted returns a cell with a color.
func Painted(c Color, text string) Cell { return Cell{Text: text, Color: c} }

// gap is the number of spaces between two columns.
const gap = 3

// WriteTo prints the table. On a terminal, it reduces the table to the width, see [Column]; elsewhere it cuts
// nothing.
func (t *Table) WriteTo(out io.Writer, s Screen) error {
	return t.WriteLayout(out, s, t.Layout(s, nil))
}

// WriteLayout prints the table in a given layout, so that its columns are aligned with rows printed before.
func (t *Table) WriteLayout(out io.Writer, s Screen, l *Layout) error {
	var text strings.Builder
	for _, row := range t.lines() {
		pending, begin := 0, 0 // spaces are written before a cell, so that no line ends with spaces
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

// show returns the text of a cell in a layout.
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

// lines returns the rows, with the header unless NoHeader is set.
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

// width measures the width of characters independently of the locale.
var width = &runewidth.Condition{}

// DisplayWidth returns the width of a text in columns of the screen.
func DisplayWidth(text string) int { return width.StringWidth(text) }

// Truncate shortens a text to a number of columns, and marks the cut with an ellipsis.
func (s Screen) Truncate(text string, columns int) string { return truncate(text, columns, s.ASCII) }

func truncate(text string, columns int, ascii bool) string {
	if ascii {
		return width.Truncate(text, columns, "...")
	}
	return width.Truncate(text, columns, "…")
}

// Printable removes characters that would move the cursor or change the terminal. Texts come from the
// cluster, and any tenant may have written them.
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
