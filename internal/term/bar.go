// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"math"
	"strings"
)

// Bar is a horizontal bar in a table cell. The table's layout determines its full length.
type Bar struct {
	// From is the start of the bar, and Share is its length. Both are fractions of the full length.
	From, Share float64
	// Ground draws a background along the full length, so that even an empty bar is visible.
	Ground bool
	// Point draws a narrow character even if Share is 0.
	Point bool
}

// eighths lists the characters that fill 0/8 to 8/8 of a column, from the left.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}

// draw returns the characters of the bar. columns is the full length of the bar in screen columns.
func (b Bar) draw(columns int, ascii bool) string {
	blocks := eighths
	ground := "·"
	if ascii {
		blocks, ground = []string{"", "", "", "", "#", "#", "#", "#", "#"}, "."
	}
	drawn := fill(b.Share, columns, blocks)
	if drawn == "" && (b.Point || b.Share > 0) {
		drawn = blocks[1]
		if ascii {
			drawn = "|"
		}
	}
	before := min(math.Round(b.From*float64(columns)), float64(columns-1))
	drawn = strings.Repeat(" ", int(max(0, before))) + drawn
	if b.Ground {
		drawn += strings.Repeat(ground, max(0, columns-DisplayWidth(drawn)))
	}
	return drawn
}

// fill returns characters that fill a share of the columns. A share above 0 is always visible, and
// only a share of 1 fills all columns.
func fill(share float64, columns int, blocks []string) string {
	if math.IsNaN(share) || share <= 0 {
		return ""
	}
	total := columns * 8
	n := int(math.Round(share * float64(total)))
	if share < 1 {
		n = min(n, total-1)
	}
	n = max(1, min(n, total))
	return strings.Repeat(blocks[8], n/8) + blocks[n%8]
}
