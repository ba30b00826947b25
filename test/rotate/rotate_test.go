// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import "testing"

// TestRotate rotates all nodes of a world in each way, and prints a table. SIZE=full takes about an
// hour. It asserts nothing about durations, but that the figures are right where they are known
// beforehand: for instance, every workload with a single replica is down at times if its pod is
// deleted without a replacement.
func TestRotate(t *testing.T) {
	e, known := extents[sizeName()]
	if !known {
		t.Fatalf("SIZE=%s: must be small or full", sizeName())
	}
	w := newWorld(t, e)
	r := newReport(t, w)
	for _, by := range ways {
		t.Run(by.key, func(t *testing.T) {
			result := w.play(t, by)
			r.add(w, result)
			r.save(t)
			w.check(t, by, result)
		})
	}
	r.print(t)
}

// play rotates all nodes of the restored world.
func (w *world) play(t *testing.T, by way) result {
	t.Helper()
	w.restore(t)
	f := w.record(t)
	by.rotate(t, w, f)
	w.awaitComplete(t)
	events, ended := f.stop(t)
	r := w.result(by, events, f.began, ended)
	t.Logf("%s workloads were down, %d violations, %d of %d nodes stuck, in %.1f s", r.down(), r.Violations, len(r.Stuck), r.Rotated, r.Seconds)
	return r
}

// checkHarmless fails the test if a workload was down, a budget violated, or a node stuck.
func (w *world) checkHarmless(t *testing.T, r result) {
	t.Helper()
	for i, s := range r.suffered {
		if a := w.applications[i]; s.Outages > 0 || s.Violations > 0 {
			t.Errorf("%s (%d replicas, of which its budget demands %d, pool %s) was down %d times, %s in all, and its budget was violated %d times",
				a.Name, a.Replicas, a.Healthy, a.pool, s.Outages, s.Down, s.Violations)
		}
	}
	if len(r.Stuck) > 0 {
		t.Errorf("the nodes %q were not empty", r.Stuck)
	}
	if r.Rotations != w.nodes {
		t.Errorf("nodes were closed %d times, want each of the %d nodes once", r.Rotations, w.nodes)
	}
}

// check fails the test if a figure is not as it must be, whatever the speed of the machine.
func (w *world) check(t *testing.T, by way, r result) {
	t.Helper()
	if r.Rotated != w.nodes {
		t.Errorf("%d nodes were closed, want %d", r.Rotated, w.nodes)
	}
	if len(r.LeftClosed) > 0 {
		t.Errorf("the nodes %q are still closed", r.LeftClosed)
	}
	singles, down := 0, 0
	for i, a := range w.applications {
		if a.Replicas == 1 {
			singles++
			down += min(1, r.suffered[i].Outages)
		}
	}
	switch by.key {
	case "drain":
		if r.Violations > 0 {
			t.Errorf("evictions violated budgets %d times", r.Violations)
		}
		if len(r.Stuck) == 0 {
			t.Error("no node was stuck, although there are budgets that allow nothing")
		}
		if r.DownBy[blocked] > 0 {
			t.Errorf("%d workloads were down whose budgets allow nothing", r.DownBy[blocked])
		}
	case "disable-eviction", "taint":
		if down != singles {
			t.Errorf("of %d workloads with one replica, %d were down", singles, down)
		}
		if r.Violations == 0 {
			t.Error("no budget was violated, although there are budgets that allow nothing")
		}
		if len(r.Stuck) > 0 {
			t.Errorf("the nodes %q were not empty", r.Stuck)
		}
	}
	if by.harmless {
		w.checkHarmless(t, r)
	}
}
