// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// Outcome is the record of a run and its problems.
type Outcome struct {
	observe.Record
	// Reached is set if the fault took effect in the run.
	Reached  bool
	Problems []Problem
	// Rest counts the operator's requests at the end of the last step. It is nil in a baseline run.
	Rest *Rest
}

// FirstLines returns the first line of each problem in the given runs.
func FirstLines(runs ...*Outcome) []string {
	var lines []string
	for _, o := range runs {
		for _, p := range o.Problems {
			lines = append(lines, p.Lines[0])
		}
	}
	return lines
}
