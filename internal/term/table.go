// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Table is a table of text cells. Widths are measured in screen columns: a Chinese character takes
// two columns, and a combining character takes none.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	// Bars lists the possible full lengths of the bars in screen columns, longest first. The table
	// uses the longest that fits on the screen.
	Bars []int
	// NoHeader omits the header row.
	NoHeader bool
}

// Column defines a column's header, and how the column is reduced if the table is too wide for the
// screen. By default, a column is never reduced.
type Column struct {
	Header string
	// Text is the minimum width of a column of sentences, which is cut before other columns. It is
	// 0 for other columns.
	Text int
	// Drop is the rank in which the column is dropped. Columns with a higher rank are dropped
	// first. A column with rank 0 is never dropped.
	Drop int
	// Name marks a column of names, which is cut last.
	Name bool
	// Least is the column's minimum width, regardless of its cells.
	Least int
}

// Cell is a table cell with a string, an optional color and, before the string, an optional bar.
type Cell struct {
	Text  string
	Color Color
	Bar   *Bar
	// BarText is the width, in screen columns, to which the string after a bar is padded for
	// alignment.
	BarText int
	// Short replaces the cell's text if the table is too wide for the screen.
	Short string
	// Span lets the text extend into the columns to its right. The cell must be the last of its
	// row.
	Span bool
}

// Text returns a cell without a color.
func Text(text string) Cell { return Cell{Text: text} }

// Painted returns a cell with a color.
func Painted(c Color, text string) Cell { return Cell{Text: text, Color: c} }

// gap is the number of spaces between two columns.
const gap = 3

// WriteTo prints the table. On a terminal, it reduces the table to the width of the screen (see
// [Column]). In files and pipes, nothing is cut.
func (t *Table) WriteTo(out io.Writer, s Screen) error {
	return t.WriteLayout(out, s, t.Layout(s, nil))
}

// WriteLayout prints the table with the given layout, which may align the columns with previously
// printed rows.
func (t *Table) WriteLayout(out io.Writer, s Screen, l *Layout) error {
	var text strings.Builder
	for _, row := range t.lines() {
		pending, begin := 0, 0 // Write pending spaces only before another cell, so that no line ends with spaces.
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

// show returns the characters of a cell, with its bar, for the given layout.
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

// lines returns the rows of the table. The header is the first row unless NoHeader is set.
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

// DisplayWidth returns the width of a string in screen columns.
func DisplayWidth(text string) int { return width.StringWidth(text) }

// Truncate shortens a string to the given number of screen columns, and marks the cut with an
// ellipsis.
func (s Screen) Truncate(text string, columns int) string { return truncate(text, columns, s.ASCII) }

func truncate(text string, columns int, ascii bool) string {
	if ascii {
		return width.Truncate(text, columns, "...")
	}
	return width.Truncate(text, columns, "…")
}

// Printable removes characters that would move the cursor or change the state of the terminal.
// Strings in the cluster may contain such characters, because any user may have written them.
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

// OneLine joins the lines of a string into a single line.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Wrap breaks a string between words, into lines of at most the given number of screen columns.
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
