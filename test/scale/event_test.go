// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// pure adds the results of Go benchmarks that handle a single event or query without a control
// plane, for this cluster size and all smaller sizes.
func (r *run) pure(t *testing.T) {
	t.Helper()
	pods, schedules := func(w clusterSize) int { return w.pods }, func(w clusterSize) int { return w.schedules }
	r.benchmark(t, "./internal/nodepool/state", "BenchmarkPodEvent", pods, time.Nanosecond, "event", "a pod event, from the cache to the sums, among %s pods")
	r.benchmark(t, "./internal/kube/wakeup", "BenchmarkTick", schedules, time.Nanosecond, "tick", "a tick, from the alarm to the next alarm, among %s schedules")
	r.benchmark(t, "./internal/capacity", "BenchmarkCluster", pods, time.Millisecond, "room", "the nodes and pods in order for questions about room, %s pods")
	r.benchmark(t, "./internal/capacity", "BenchmarkLossOfEach/room=false", pods, time.Millisecond, "loss", "… the loss of each node, one after the other, without room, %s pods")
	r.benchmark(t, "./internal/capacity", "BenchmarkFit", pods, time.Millisecond, "fit", "… how many copies of a pod fit, among %s pods")
	const spread = "pods that are spread over zones and nodes"
	r.benchmark(t, "./internal/capacity", "BenchmarkClusterSpread", pods, time.Millisecond, "room-spread", "… the nodes and pods in order, with the first answer, for "+spread+", %s pods")
	r.benchmark(t, "./internal/capacity", "BenchmarkLossSpread", pods, time.Millisecond, "loss-spread", "… the loss of each node, for "+spread+", %s pods")
	r.benchmark(t, "./internal/capacity", "BenchmarkFitSpread", pods, time.Millisecond, "fit-spread", "… how many copies fit, for "+spread+", among %s pods")
	r.benchmark(t, "./internal/nodepool/state", "BenchmarkHeadroom", pods, time.Millisecond, "headroom", "the headroom of a pool, in the manager, among %s pods")
}

// benchmark adds the results of a Go benchmark, in the given unit. Its sub-benchmarks are named
// after cluster sizes.
func (r *run) benchmark(t *testing.T, pkg, name string, size func(clusterSize) int, unit time.Duration, key, what string) {
	t.Helper()
	var sizes []string
	for name, e := range extents {
		if name != "tiny" && size(e.clusterSize) <= size(r.clusterSize) {
			sizes = append(sizes, strconv.Itoa(size(e.clusterSize)))
		}
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-run=^$", "-bench=^"+strings.ReplaceAll(name, "/", "$/^")+"$/=("+strings.Join(sizes, "|")+")$",
		"-benchmem", "-benchtime=200ms", pkg)
	command.Dir = framework.Root()
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := regexp.MustCompile(`=(\d+)\S*\s+\d+\s+([0-9.]+) ns/op\s+\d+ B/op\s+(\d+) allocs/op`).FindAllSubmatch(out, -1)
	if len(found) != len(sizes) {
		t.Errorf("%s has %d results, want %d:\n%s", name, len(found), len(sizes), out)
	}
	for _, line := range found {
		nanoseconds, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil {
			t.Fatal(err)
		}
		allocations, err := strconv.ParseFloat(string(line[3]), 64)
		if err != nil {
			t.Fatal(err)
		}
		r.report.add(figure{
			Key: key + "-" + string(line[1]), Unit: strings.TrimPrefix(unit.String(), "1"), Value: nanoseconds / float64(unit),
			What: fmt.Sprintf(what+" (%s allocations)", line[1], line[3]), Allocations: allocations,
		})
	}
}
