// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// sample holds the memory, goroutines and metric series of the idle manager, and the time since the
// start of the test.
type sample struct {
	at          time.Duration
	rss, heap   float64 // MiB
	goroutines  float64
	connections float64 // goroutines that serve HTTP connections
	// series and stacks count the metric series by family, and the goroutines by function, so that a
	// failure can say which have become more.
	series, stacks map[string]int
}

// seriesCount returns the number of metric series.
func (s sample) seriesCount() float64 {
	sum := 0
	for _, count := range s.series {
		sum += count
	}
	return float64(sum)
}

// badDay is the fault scenario for each round of the soak: some writes are rejected, some of their
// responses are lost, and watches are cut.
const badDay = `rules:
- {name: busy, match: {verbs: [patch, update], resources: [nodes, nodepools/status, scheduledrestarts/status, deployments.apps]}, count: {from: 3, every: 9}, fault: {kind: Error, code: 429, reason: TooManyRequests}}
- {name: lost, match: {verbs: [patch, update], resources: [nodes, nodepools/status, scheduledrestarts/status, deployments.apps]}, count: {from: 5, every: 9}, fault: {kind: LoseAnswer}}
- {name: broken, match: {resources: [nodes, pods, nodepools, scheduledrestarts]}, events: {types: [MODIFIED]}, count: {from: 20, every: 50}, fault: {kind: CutWatch}}
`

// TestSoak churns nodes, pods, pools and restarts for the duration SOAK, with injected faults and
// an elected manager. After each round everything is deleted, and the manager must be as small as
// after the first rounds, which shows that it keeps nothing of deleted objects. Without SOAK the
// test runs the minimum number of rounds for this comparison.
func TestSoak(t *testing.T) {
	t.Parallel()
	duration, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "0s"))
	if err != nil {
		t.Fatalf("SOAK: %v", err)
	}
	profiles := framework.FreeAddress(t)
	proxy := cluster.StartProxy(t, "")
	// The test measures a single process, so the manager must not lose its lease on a busy machine.
	manager := cluster.StartManager(t, append([]string{"--kubeconfig", proxy.Kubeconfig, "--pprof-bind-address", profiles, "--log-level=info"}, cluster.ElectUntilReleased(t)...)...)
	var samples []sample
	start := time.Now()
	// The caches and the Go runtime's pools fill up in the first rounds, so these rounds are not
	// compared.
	const warm = 2
	for round := 0; round < warm+4 || time.Since(start) < duration; round++ {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			proxy.Add(t, badDay)
			churn(t, fmt.Sprint("soak-", round))
			for _, rule := range []string{"busy", "lost", "broken"} {
				if proxy.Fired(t, rule) == 0 {
					t.Errorf("the rule %s never fired", rule)
				}
			}
			proxy.Clear(t)
		})
		if t.Failed() {
			return
		}
		s := measure(t, manager, profiles)
		s.at = time.Since(start).Round(time.Second)
		samples = append(samples, s)
	}

	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "AFTER\tRSS MiB\tHEAP MiB\tGOROUTINES\tOF CONNECTIONS\tSERIES")
	for _, i := range shown(len(samples)) {
		s := samples[i]
		fmt.Fprintf(out, "%s\t%.1f\t%.2f\t%.0f\t%.0f\t%.0f\n", s.at, s.rss, s.heap, s.goroutines, s.connections, s.seriesCount())
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rounds\n%s", len(samples), table.String())

	samples = samples[warm:]
	third := (len(samples) + 2) / 3
	early, late := samples[:third], samples[len(samples)-third:]
	// Garbage and requests that are under way only add to a size, so the smallest of several is
	// compared. What a manager keeps of each round is in all of them.
	flat := func(what string, factor, slack float64, of func(sample) float64, counts func(sample) map[string]int) {
		t.Helper()
		was, is := smallest(early, of), smallest(late, of)
		if of(is) > of(was)*factor+slack {
			t.Errorf("%s: grown from %.1f to %.1f%s", what, of(was), of(is), grown(counts(was), counts(is)))
		}
	}
	series, stacks := func(s sample) map[string]int { return s.series }, func(s sample) map[string]int { return s.stacks }
	flat("RSS in MiB", 1.25, 8, func(s sample) float64 { return s.rss }, stacks)
	flat("the heap in MiB", 1.1, 1, func(s sample) float64 { return s.heap }, stacks)
	// The number of goroutines varies by one or two within an hour, but a leak of two per round is
	// detected.
	flat("goroutines", 1, 3, func(s sample) float64 { return s.goroutines }, stacks)
	// The number of idle connections depends on the number of concurrent requests.
	flat("goroutines of connections", 1, 16, func(s sample) float64 { return s.connections }, stacks)
	flat("metric series", 1, 8, sample.seriesCount, series)
	manager.AssertSound(t)
}

// churn creates and edits objects, moves nodes in and out of the pool, replaces pods,
// and deletes everything.
func churn(t *testing.T, name string) {
	w := newWorkload(t, &cluster, name, 10)
	w.up(t)
	tick := w.begin(t)
	guests := w.nodes
	for i := range 5 {
		// A guest node briefly joins the pool; another node leaves and rejoins it.
		guest := w.node(guests + i)
		cluster.Apply(t, guest)
		cluster.Delete(t, guest)
		node := framework.Node(w.node(i).Name)
		cluster.Change(t, node, func() { node.Labels[w.key()] = "by-hand" })
	}
	for _, replicas := range []int32{5, 1} {
		cluster.Change(t, w.deployment, func() { w.deployment.Spec.Replicas = &replicas })
	}
	framework.EventuallyWithin(t, untilWatched, name+" has completed", func() error {
		if err := w.settled(t, "2"); err != nil {
			return err
		}
		if len(w.restart.Status.History) == 0 || !w.restart.Status.History[0].ScheduledTime.Time.Equal(tick) {
			return fmt.Errorf("the history is %+v", w.restart.Status.History)
		}
		return nil
	})
	// The test's cleanup deletes the last object.
}

// measure waits until the work queues are empty, and returns the manager's size.
func measure(t *testing.T, manager *framework.Manager, profiles string) sample {
	t.Helper()
	var metrics framework.Metrics
	// Garbage collection deletes the pods of a deleted node after up to a minute.
	framework.EventuallyWithin(t, time.Minute+2*framework.Patience, "the queues are empty and the pods are gone", func() error {
		metrics = manager.ReadMetrics(t)
		if queued := metrics.Sum("workqueue_depth") + metrics.Sum("workqueue_unfinished_work_seconds"); queued > 0 {
			return fmt.Errorf("%.0f are queued", metrics.Sum("workqueue_depth"))
		}
		pods := &corev1.PodList{}
		if err := cluster.List(t.Context(), pods); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods still exist, the first is %s on node %s", len(pods.Items), pods.Items[0].Name, pods.Items[0].Spec.NodeName)
		}
		return nil
	})
	// The request for the heap profile triggers a garbage collection, and the profile states the
	// heap size before the response itself allocates memory.
	heap := 0.0
	_, after, _ := strings.Cut(profile(t, profiles, "heap?gc=1&debug=1"), "\n# HeapAlloc = ")
	if _, err := fmt.Sscan(after, &heap); err != nil {
		t.Fatalf("the profile does not say how large the heap is: %v", err)
	}
	metrics = manager.ReadMetrics(t)
	const mebi = 1 << 20
	s := sample{rss: metrics.Sum("process_resident_memory_bytes") / mebi, heap: heap / mebi, series: map[string]int{}}
	s.goroutines, s.connections, s.stacks = goroutines(t, profiles)
	for name, family := range metrics {
		s.series[name] = len(family.Metric)
	}
	return s
}

// goroutines returns the number of goroutines that serve HTTP connections, the number of all other
// goroutines, and the numbers by the function in which they began.
func goroutines(t *testing.T, profiles string) (others, connections float64, stacks map[string]int) {
	t.Helper()
	stacks = map[string]int{}
	// The profile has one paragraph per distinct stack, with its number of goroutines and its
	// functions.
	for stack := range strings.SplitSeq(profile(t, profiles, "goroutine?debug=1"), "\n\n") {
		stack = strings.TrimPrefix(stack, "goroutine profile: ")
		if _, first, found := strings.Cut(stack, "\n"); found && strings.HasPrefix(stack, "total ") {
			stack = first
		}
		count := 0.0
		if _, err := fmt.Sscanf(stack, "%f @", &count); err != nil {
			continue
		}
		// The last line is: # ADDRESS FUNCTION FILE:LINE.
		lines := strings.Split(stack, "\n")
		if fields := strings.Fields(lines[len(lines)-1]); len(fields) > 2 {
			stacks[fields[2]] += int(count)
		}
		if strings.Contains(stack, "net/http.(*persistConn)") || strings.Contains(stack, "net/http.(*conn).serve") || strings.Contains(stack, "http2") {
			connections += count
		} else {
			others += count
		}
	}
	if others == 0 {
		t.Fatal("the profile has no goroutines")
	}
	return others, connections, stacks
}

// profile returns the named pprof profile of the manager.
func profile(t *testing.T, profiles, name string) string {
	t.Helper()
	response, err := http.Get("http://" + profiles + "/debug/pprof/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shown returns the indexes of at most ten samples to print.
func shown(count int) []int {
	var indexes []int
	for i := range min(count, 10) {
		indexes = append(indexes, i*(count-1)/max(1, min(count, 10)-1))
	}
	return indexes
}

// smallest returns the sample for which `of` is the smallest.
func smallest(samples []sample, of func(sample) float64) sample {
	return slices.MinFunc(samples, func(a, b sample) int { return cmp.Compare(of(a), of(b)) })
}

// grown lists the names whose numbers have become larger, a line each.
func grown(was, is map[string]int) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if is[name] > was[name] {
			fmt.Fprintf(&text, "\n  %d, before %d: %s", is[name], was[name], name)
		}
	}
	return text.String()
}
