// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"math"
	"strings"
)

// eighths are the blocks that fill a column from the left.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}

// bar draws a share of a width. What is more than nothing is seen, and only
// what is everything is full.
func bar(share float64, columns int) string {
	if math.IsNaN(share) || share <= 0 {
		return ""
	}
	total := columns * 8
	n := int(math.Round(share * float64(total)))
	if share < 1 {
		n = min(n, total-1)
	}
	n = max(1, min(n, total))
	return strings.Repeat("█", n/8) + eighths[n%8]
}
