// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// heap is what the manager has in use, without garbage.
type heap struct {
	manager *framework.Manager
	// rest is what it was before any trick, in bytes.
	rest float64
}

// read returns what the last collection of garbage has found in use, by the metrics of the Go runtime.
// That collection began after the call: one that was under way then ends first. Reading the
// metrics makes garbage, so that there will be one.
func (h *heap) read(t *testing.T) (live float64) {
	t.Helper()
	const cycles = "go_gc_cycles_total_gc_cycles_total"
	before := h.manager.ReadMetrics(t).Sum(cycles)
	framework.EventuallyWithin(t, patience, "the manager has collected its garbage", func() error {
		metrics := h.manager.ReadMetrics(t)
		live = metrics.Sum("go_gc_heap_live_bytes")
		if n := metrics.Sum(cycles); n < before+2 || live == 0 {
			return fmt.Errorf("it has done so %g times, before %g times; %g bytes are in use", n, before, live)
		}
		return nil
	})
	return live
}

// check fails if twice as much is in use as at rest, or more.
func (h *heap) check(t *testing.T) {
	t.Helper()
	const mib = 1 << 20
	live := h.read(t)
	if live >= 2*h.rest {
		t.Errorf("the manager has %.1f MiB in use, at rest %.1f MiB: want less than twice of that", live/mib, h.rest/mib)
		return
	}
	t.Logf("the manager has %.1f MiB in use, at rest %.1f MiB", live/mib, h.rest/mib)
}
