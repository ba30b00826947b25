// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"math"
	"strings"
)

// Bar is a bar whose full length is the width of its column.
type Bar struct {
	// From is the start of the bar, and Share its length, both as fractions of the full length.
	From, Share float64
	// Ground fills the rest of the column, so that an empty bar is visible.
	Ground bool
	// Point draws a mark in place of a bar that is too short to be visible.
	Point bool
}

// eighths are the characters that fill a part of a column from the left.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}

// draw draws the bar with the given full length in columns.
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

// fill draws a share of a width. A share above 0 is always visible, and only a share of 1 fills the width.
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
