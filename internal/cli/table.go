// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// table is text in columns, as wide as they are on the screen: a Chinese
// character has two, a combining one none.
type table struct {
	header []string
	rows   [][]cell
	// uncut is how many columns, from the left, are never cut.
	uncut int
	// widths that the columns have at least.
	widths []int
	// bare: the header is left out; the columns are as wide as with it.
	bare bool
}

// cell is a text, and perhaps a colour.
type cell struct {
	text string
	hue  hue
}

const (
	gap = 3
	// narrowest is to how little a column is cut at most.
	narrowest = 6
)

// writeTo prints the table. What is wider than a terminal is cut, the widest
// columns first; elsewhere nothing is.
func (t *table) writeTo(out io.Writer, s screen) error {
	rows := t.cells()
	widths := fit(t.atLeast(), s.width, t.uncut)
	if t.bare {
		rows = rows[1:]
	}
	var text strings.Builder
	for _, row := range rows {
		pending := 0 // blanks go before a cell, so that no line ends with some
		for i, c := range row {
			if s.width > 0 {
				c.text = cut(c.text, widths[i])
			}
			if c.text != "" {
				text.WriteString(strings.Repeat(" ", pending))
				text.WriteString(s.paint(c.hue, c.text))
				pending = 0
			}
			pending += widths[i] - wide(c.text) + gap
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// cells returns all cells, the header's too, with nothing in them that cannot
// be printed.
func (t *table) cells() [][]cell {
	rows := make([][]cell, 0, len(t.rows)+1)
	head := make([]cell, len(t.header))
	for i, text := range t.header {
		head[i] = cell{text: text}
	}
	for _, row := range append([][]cell{head}, t.rows...) {
		clean := make([]cell, len(row))
		for i, c := range row {
			clean[i] = cell{printable(c.text), c.hue}
		}
		rows = append(rows, clean)
	}
	return rows
}

// atLeast returns how wide the columns are if nothing is cut.
func (t *table) atLeast() []int {
	widths := widthsOf(t.cells())
	for i := range min(len(widths), len(t.widths)) {
		widths[i] = max(widths[i], t.widths[i])
	}
	return widths
}

func widthsOf(rows [][]cell) []int {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], wide(c.text))
		}
	}
	return widths
}

// fit takes from the widest columns, but for the first few, until all fit into
// the width; 0 is no limit. If they cannot, the terminal wraps the lines.
func fit(widths []int, width, uncut int) []int {
	if width <= 0 {
		return widths
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := -1
		for i := uncut; i < len(widths); i++ {
			if widths[i] > narrowest && (widest < 0 || widths[i] >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// condition holds what the width of a character does not depend on: the locale
// of the machine.
var condition = &runewidth.Condition{}

// wide returns how many columns of the screen a text takes.
func wide(text string) int { return condition.StringWidth(text) }

// cut shortens a text to so many columns, the last of which says so.
func cut(text string, columns int) string { return condition.Truncate(text, columns, "…") }

// printable takes out what would move the cursor or change the terminal:
// messages come from the cluster, and anybody may have written them.
func printable(text string) string {
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
