// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"maps"
	"slices"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Scope describes the objects and fields that runs with faults are judged by, as counted in the
// baseline run `o`. `broken` lists problems that also occur without a fault.
func (b *Baseline) Scope(o *observe.Record, broken []string) *results.Scope {
	mask := state.NewMask()
	mask.Add(b.Masked()...)
	last := map[string]*observe.Version{}
	for i := range o.Steps {
		for j := range o.Steps[i].Objects {
			v := &o.Steps[i].Objects[j]
			last[v.Key()] = v
		}
	}
	c := observe.NewCensus(b.Names, b.Locks)
	for _, key := range slices.Sorted(maps.Keys(last)) {
		c.Add(last[key], mask)
	}
	s := c.Scope(o.Kinds, o.Never, mask)
	for _, key := range slices.Sorted(maps.Keys(b.Uncounted)) {
		s.Besides = append(s.Besides, key+", how often it is created and deleted: it "+DiffersUndisturbed)
	}
	for _, line := range broken {
		s.Besides = append(s.Besides, "reported once, and not with a fault as well: "+line)
	}
	if !b.MakesPods {
		s.Besides = append(s.Besides, "how often pods are created and deleted: the operator makes none itself")
	}
	return s
}
