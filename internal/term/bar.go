// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"math"
	"strings"
)

// Bar is a share of a whole, drawn as long as the table has room for.
type Bar struct {
	// From is where the bar begins, and Share how long it is; 1 is the whole.
	From, Share float64
	// Ground fills the rest, so that an empty bar is seen too.
	Ground bool
	// Point marks the place of a bar that is too short to be seen.
	Point bool
}

// eighths are the blocks that fill a column from the left.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}

// draw draws the bar; the whole has this many columns.
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

// fill draws a share of a width. Anything more than nothing is visible, and only
// the whole is full.
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
