// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// readsLarge has the manager read a large Deployment and a large ScheduledRestart before its memory at
// rest is measured: what reads a watch keeps a buffer as large as the largest object that it has read,
// until the watch ends. There is one for each kind, however many objects are large.
func (s *stage) readsLarge(t *testing.T) {
	t.Helper()
	d := workload(quiet, "large", 0, nil)
	d.SetAnnotations(map[string]string{tidekeeperv1.OptInAnnotation: "true", tidekeeperv1.OptInScheduleAnnotation: "@yearly"})
	r := restart(quiet, "large-too", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true })
	for _, o := range []client.Object{d, r} {
		var finalizers []string
		for i := range 5000 {
			finalizers = append(finalizers, fmt.Sprintf("%s.example.com/%08d%s", strings.Repeat("x", 40), i, strings.Repeat("y", 50)))
		}
		o.SetFinalizers(finalizers)
		if err := cluster.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, "the manager has read them", func() error {
		if cluster.Refresh(t, r); r.Status.ObservedGeneration == 0 {
			return errNotYet
		}
		return cluster.Get(t.Context(), client.ObjectKeyFromObject(d), restart(quiet, "large", nil))
	})
	for _, o := range []client.Object{d, r} {
		if err := cluster.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
}

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
