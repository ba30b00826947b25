// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Plan selects the cases to run and limits the run.
type Plan struct {
	// For limits the duration of the entire run; 0 means unlimited.
	For time.Duration
	// Only lists case IDs, or substrings of case names. If it is empty, all cases are selected.
	Only []string
	// Shard and Shards divide the cases among machines: this process runs part Shard, counted from
	// 1, of Shards parts.
	Shard, Shards int
	// Jobs is the number of sandboxes used in parallel.
	Jobs int
	// Fresh discards the cases and findings recorded by earlier runs.
	Fresh bool
	// Progress receives a line of output for each completed case.
	Progress io.Writer
}

// Chooses reports whether the list Only is empty or selects a case.
func (p *Plan) Chooses(name, id string) bool {
	return len(p.Only) == 0 || slices.ContainsFunc(p.Only, func(part string) bool { return strings.Contains(name, part) || id == part })
}

// Plays reports whether a case is selected by Only and belongs to this process's shard.
func (p *Plan) Plays(name, id string) bool {
	return p.Chooses(name, id) && InPart(name, p.Shard, p.Shards)
}

// Nothing returns an error that explains why a plan selects no cases. `name` is the tool's noun for
// a case, `hint` explains the values of --only, and `why` is the reason if neither --only nor
// --shard excludes cases.
func (p *Plan) Nothing(name, hint, why string) error {
	switch {
	case len(p.Only) > 0:
		why = fmt.Sprintf("no %s matches --only %s: %s", name, strings.Join(p.Only, ", "), hint)
	case p.Shards > 1:
		why = fmt.Sprintf("part %d/%d is empty, as there are few %ss", p.Shard, p.Shards, name)
	}
	return fmt.Errorf("no %s to play: %s", name, why)
}
