// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/test/largeworld"
)

// largeWorld returns the kinds of a large cluster.
func largeWorld() []Kind {
	w := largeworld.New(noon)
	var f fakeKind
	kinds := []Kind{
		f.kind(kindPools, &tidekeeperv1.NodePool{}, w.Pools, nil), f.kind(kindNodes, &corev1.Node{}, w.Nodes, nil), f.kind(kindPods, &corev1.Pod{}, w.Pods, nil),
		f.kind(kindRestarts, &tidekeeperv1.ScheduledRestart{}, w.Restarts, nil),
	}
	for _, name := range restartsKinds[1:] {
		if name == kindPods {
			continue
		}
		kinds = append(kinds, f.kind(name, &appsv1.Deployment{}, &appsv1.DeploymentList{}, nil))
	}
	return kinds
}

// TestLargeWorld checks that the pages of a large cluster are small enough to be sent often, and
// that the cost of building a page does not grow quadratically with the number of objects. It
// counts allocations and their bytes, because durations depend on the machine. Collecting the
// garbage of pages once took a third of the plugin's time.
func TestLargeWorld(t *testing.T) {
	const (
		mostWork    = 150_000
		mostGarbage = 16 << 20
		mostBytes   = 1 << 20
		mostMemory  = 400 << 20
	)
	s := newTestSite(t, nil, largeWorld()...)
	for _, path := range []string{"/", "/pools/worker", "/capacity", "/restarts", "/pods"} {
		began := time.Now()
		e, err := s.render(t.Context(), path, nil, patient)
		if err != nil {
			t.Fatal(err)
		}
		cold := time.Since(began)
		before, allocated := mallocs()
		began = time.Now()
		if _, err := s.render(t.Context(), path, nil, patient); err != nil {
			t.Fatal(err)
		}
		warm := time.Since(began)
		work, garbage := mallocs()
		work, garbage = work-before, garbage-allocated
		t.Logf("%-14s %7d bytes, first %s, then %s with %d allocations of %d bytes", path, len(e.HTML), cold.Round(time.Millisecond), warm.Round(time.Millisecond), work, garbage)
		if work > mostWork || garbage > mostGarbage || len(e.HTML) > mostBytes {
			t.Errorf("%s: %d bytes with %d allocations of %d bytes, want at most %d, %d and %d", path, len(e.HTML), work, garbage, mostBytes, mostWork, mostGarbage)
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d MiB in use", m.HeapInuse>>20)
	if m.HeapInuse > mostMemory {
		t.Errorf("%d MiB in use, want at most %d", m.HeapInuse>>20, mostMemory>>20)
	}
}

// TestNodeRowsOfALargePool checks that the table of a pool's nodes is short until a level in the
// histogram is chosen, and names the other nodes.
func TestNodeRowsOfALargePool(t *testing.T) {
	s := newTestSite(t, nil, largeWorld()...)
	for class, want := range map[string]int{"": firstNodeRows, "9": mostNodeRows} {
		e, err := s.render(t.Context(), "/pools/worker", url.Values{"class": {class}}, patient)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(e.HTML, `id="node-`); got != want || !strings.Contains(e.HTML, " more: choose a level in the histogram") {
			t.Errorf("class %q: %d rows, want %d and how many more", class, got, want)
		}
	}
}

// mallocs returns the number of heap objects that this process has allocated so far, and their bytes.
func mallocs() (count, bytes uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs, m.TotalAlloc
}
