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

	"tidekeeper.dev/tidekeeper/test/framework"
)

// podEvent takes over what the benchmark of the pure floor says about one event
// of a pod, at this size and the smaller ones.
func (r *run) podEvent(t *testing.T) {
	t.Helper()
	var sizes []string
	for _, e := range extents {
		if e.pods <= r.pods {
			sizes = append(sizes, strconv.Itoa(e.pods))
		}
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-run=^$", "-bench=^BenchmarkPodEvent$/^pods=("+strings.Join(sizes, "|")+")$",
		"-benchmem", "-benchtime=200ms", "./internal/nodepool")
	command.Dir = framework.Root()
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range regexp.MustCompile(`pods=(\d+)\S*\s+\d+\s+([0-9.]+) ns/op\s+\d+ B/op\s+(\d+) allocs/op`).FindAllSubmatch(out, -1) {
		nanoseconds, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil {
			t.Fatal(err)
		}
		r.report.add(figure{
			Key: "event-" + string(line[1]), Unit: "ns", Value: nanoseconds,
			What: fmt.Sprintf("a pod event, from the cache to the sums, among %s pods (%s allocations)", line[1], line[3]),
		})
	}
}
