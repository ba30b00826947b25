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

// Plan chooses the cases to play.
type Plan struct {
	// For limits the time of the whole run; 0 plays every case.
	For time.Duration
	// Only are substrings of the names of cases, or IDs; empty plays every case.
	Only []string
	// Shard and Shards divide the cases among machines: this process plays part Shard of Shards,
	// counted from 1.
	Shard, Shards int
	// Jobs is the number of sandboxes that play side by side.
	Jobs int
	// Fresh discards the cases and findings that earlier runs recorded.
	Fresh bool
	// Progress receives a line for each case.
	Progress io.Writer
}

// Chooses reports whether Only selects a case.
func (p *Plan) Chooses(name, id string) bool {
	return len(p.Only) == 0 || slices.ContainsFunc(p.Only, func(part string) bool { return strings.Contains(name, part) || id == part })
}

// Plays reports whether a case is selected by Only and in this part of the cases.
func (p *Plan) Plays(name, id string) bool {
	return p.Chooses(name, id) && InPart(name, p.Shard, p.Shards)
}

// Nothing returns the error of a plan without a case to play, which says why. Name is that of a case, hint
// helps with --only, and why is the reason if the plan leaves nothing out.
func (p *Plan) Nothing(name, hint, why string) error {
	switch {
	case len(p.Only) > 0:
		why = fmt.Sprintf("no %s matches --only %s: %s", name, strings.Join(p.Only, ", "), hint)
	case p.Shards > 1:
		why = fmt.Sprintf("part %d/%d is empty, as there are few %ss", p.Shard, p.Shards, name)
	}
	return fmt.Errorf("no %s to play: %s", name, why)
}
