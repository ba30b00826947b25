// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// readsLarge lets the manager read a large Deployment and a large ScheduledRestart before its
// memory at rest is measured. A watch's reader keeps a buffer as large as the largest object that
// it has read, until the watch ends. There is one buffer per kind, regardless of the number of
// large objects.
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

// heap measures the manager's live heap, without garbage.
type heap struct {
	manager *framework.Manager
	// pprof is the address at which the manager serves profiles.
	pprof string
	// rest is the live heap before the first trick, in bytes.
	rest float64
}

// read returns the live heap after a garbage collection that begins after the call, from the Go
// runtime's metrics. Requesting a heap profile triggers the collection, which could otherwise take
// up to two minutes. A second collection is needed because the first one keeps the contents of
// sync.Pools.
func (h *heap) read(t *testing.T) float64 {
	t.Helper()
	for range 2 {
		response, err := http.Get("http://" + h.pprof + "/debug/pprof/heap?gc=1")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("the profile of the heap: %s, %v", response.Status, err)
		}
	}
	live := h.manager.ReadMetrics(t).Sum("go_gc_heap_live_bytes")
	if live == 0 {
		t.Fatal("the metrics do not say how much is in use")
	}
	return live
}

// check fails the test if the live heap is at least twice as large as before the first trick.
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
