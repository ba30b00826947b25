// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// Outcome is the record of a run with the verdict on it.
type Outcome struct {
	observe.Record
	// Reached is set if the fault was injected.
	Reached  bool
	Problems []Problem
	// Rest is the pace of the operator at the end of the last step, nil for a baseline run.
	Rest *Rest
}

// FirstLines returns the first line of each problem of runs.
func FirstLines(runs ...*Outcome) []string {
	var lines []string
	for _, o := range runs {
		for _, p := range o.Problems {
			lines = append(lines, p.Lines[0])
		}
	}
	return lines
}
