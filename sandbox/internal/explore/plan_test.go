// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
)

// Each fault of the table is planned for an operator that elects a leader, writes, reads, and lists
// from a cache, and for no operator that does none of it.
func TestEachFaultIsPlanned(t *testing.T) {
	b := &Baseline{
		Elects: true, Listed: []string{"claims"}, Watched: []string{"claims"},
		Steps: []BaseStep{{}, {Events: map[string]int{"claims": 2}, Writes: []Request{{Verb: "update", Resource: "claims"}}}, {Events: map[string]int{"claims": 1}}},
	}
	planned := map[faults.Kind]Fault{}
	for _, f := range plan(b) {
		planned[f.Kind] = f.Fault
	}
	for _, e := range faults.Table {
		f, is := planned[e.Kind]
		if !is {
			t.Errorf("%s is never planned", e.Kind)
			continue
		}
		if (f.Call != nil) != (e.Hits == faults.Write) || (f.Resource != "") != (e.Hits == faults.Event || e.Hits == faults.Events) && f.AsOf == "" {
			t.Errorf("%s hits a %s, and is planned as %s", e.Kind, e.Hits, f.name())
		}
		if f.describe(&Workload{}) == "" || f.Possible() != e.Possible || f.subject() == "" && e.Hits != faults.Start {
			t.Errorf("%s cannot be described: %+v", e.Kind, f)
		}
	}
	for _, f := range plan(&Baseline{Steps: []BaseStep{{}}}) {
		t.Errorf("%s is planned for an operator that does nothing", f.name())
	}
}
