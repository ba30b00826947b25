// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// size is the size of a restart benchmark.
type size struct {
	// schedules is the number of ScheduledRestarts; due is the number that is due at the same time.
	schedules, due int
	// rounds is the number of measurements that are combined into a figure.
	rounds int
	// lead is the minimum time between setting a tick and the tick itself; quiet is the required
	// idle time before a measurement.
	lead, quiet time.Duration
	// ticks is set if the schedules' ticks are measured as well as requests, which takes up to two
	// minutes.
	ticks bool
}

var sizes = map[string]size{
	"tiny":  {schedules: 40, due: 10, rounds: 1, lead: 3 * time.Second, quiet: time.Second},
	"small": {schedules: 100, due: 20, rounds: 1, lead: 5 * time.Second, quiet: time.Second},
	"full":  {schedules: 1000, due: 100, rounds: 5, lead: 8 * time.Second, quiet: 3 * time.Second, ticks: true},
}

// bench is one run of the restart benchmark.
type bench struct {
	*framework.Cluster
	size
	manager *framework.Manager
}

func TestRestart(t *testing.T) {
	name := scaleName()
	s, known := sizes[name]
	if !known {
		t.Fatalf("SCALE=%s: must be small or full", name)
	}
	start, load := time.Now(), framework.LoadAverage(t)
	b := &bench{Cluster: framework.Start(t, "--nodes=1", "--audit"), size: s}

	b.startManager(t)
	b.populate(t, s.schedules)

	ours := b.measure(t, s.rounds, b.request)
	var ticks outcome
	if s.ticks {
		ticks = b.measure(t, 1, b.reschedule)
	}
	crash := b.crash(t)
	b.manager.Stop(t)

	if !whole() {
		t.Log("TEST_ALL is not set: the baseline, of which nothing is asserted, is not measured")
		return
	}
	baseline := framework.Build(t, "./test/scale/baseline/cron")
	limited := b.measureBaseline(t, baseline, 1)
	unlimited := b.measureBaseline(t, baseline, s.rounds, "--qps=-1")
	baselineCrash := b.crashBaseline(t, baseline)

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		for i, cell := range cells {
			if i > 0 {
				fmt.Fprint(out, "\t")
			}
			fmt.Fprint(out, cell)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\n%d schedules, %d due at once, %d rounds; load average %s at the start, %s at the end; %s in all\n\n",
		s.schedules, s.due, s.rounds, load, framework.LoadAverage(t), time.Since(start).Round(time.Second))
	row("WHAT", "MEASURED", "TO REACH", "BASELINE", "BASELINE WITHOUT CLIENT LIMITS")
	row("lateness, median", millis(ours.lateness(50)), "", millis(limited.lateness(50)), millis(unlimited.lateness(50)))
	row("lateness, 99th percentile", millis(ours.lateness(99)), "100 ms", millis(limited.lateness(99)), millis(unlimited.lateness(99)))
	row("lateness, worst", millis(ours.lateness(100)), "", millis(limited.lateness(100)), millis(unlimited.lateness(100)))
	row("claimed before it was due, median", millis(percentile(ours.claims, 50)), "", "claims nothing", "claims nothing")
	if s.ticks {
		row("lateness of schedules, median", millis(ticks.lateness(50)), "", "", "")
		row("lateness of schedules, 99th percentile", millis(ticks.lateness(99)), "100 ms", "", "")
	}
	row("writes per restart, most", ours.mostWrites(), "4", limited.mostWrites(), unlimited.mostWrites())
	row("reads per restart, mean", fmt.Sprintf("%.2f", ours.meanReads()), "", fmt.Sprintf("%.2f", limited.meanReads()), fmt.Sprintf("%.2f", unlimited.meanReads()))
	row("killed 1 s before the tick, started 1 s after it", crash.restarted(s.due), "all", baselineCrash.restarted(s.due), "")
	row("… lateness, median", millis(crash.lateness(50)), "", millis(baselineCrash.lateness(50)), "")
	row("… lateness, worst", millis(crash.lateness(100)), "", millis(baselineCrash.lateness(100)), "")
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

func millis(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// startManager starts the manager with the default log level, and with a restart budget that is
// large enough for all restarts that are due at the same time.
func (b *bench) startManager(t *testing.T) {
	t.Helper()
	args := []string{fmt.Sprintf("--max-concurrent-restarts=%d", b.due), "--restart-namespace-share=100", "--restart-concurrency=64", "--log-level=info"}
	b.manager = b.StartManager(t, slices.Concat(oneNamespace, args)...)
}

// oneNamespace lists flags that give a single namespace all requests that an administrator would
// divide among many namespaces, because the benchmark's workloads are all in one namespace.
var oneNamespace = []string{"--namespace-requests-per-second=10000", "--namespace-requests-burst=1000000"}

// claimAhead returns the time between the first claim and the scheduled time of the given number of
// ticks, for a manager that allows the same number of concurrent restarts; see
// docs/concepts/scheduled-restarts.md.
func claimAhead(due int) time.Duration {
	return min(time.Second+time.Duration(due)*10*time.Millisecond, time.Minute)
}

// outcome summarizes the requests that clients sent for ticks.
type outcome struct {
	// late lists the delay between each tick and the receipt of its patch. claims lists the time
	// between the receipt of each tick's claiming status write and the tick.
	late, claims []time.Duration
	// writes counts the writes by tick and object; reads counts all reads.
	writes map[string]int
	reads  int
}

func (o outcome) lateness(percent int) time.Duration { return percentile(o.late, percent) }

func (o outcome) mostWrites() int {
	return slices.Max(append(slices.Collect(maps.Values(o.writes)), 0))
}

func (o outcome) meanReads() float64 { return float64(o.reads) / float64(max(1, len(o.late))) }

func (o outcome) restarted(of int) string { return fmt.Sprintf("%d of %d restarted", len(o.late), of) }

// percentile returns the smallest value that the given percentage of values does not exceed, or -1 if
// there are none.
func percentile[N ~int64 | ~float64](all []N, percent int) N {
	if len(all) == 0 {
		return -1
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// request requests a restart of each workload that should be due, and returns the requested time.
//
// A request is handled like a tick of the schedule: both set the alarm of the object, and when it
// fires, the same code claims and sends the restart. The measurement is therefore the same, but
// does not have to wait for the next full minute.
func (b *bench) request(t *testing.T) time.Time {
	return b.arm(t, time.Second, func(at time.Time) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, tidekeeperv1.RestartNowAnnotation, at.Format(time.RFC3339))
	}, func(name string) client.Object { return restartOf(name) })
}

// reschedule changes the schedule of each ScheduledRestart that should be due to the next possible
// minute, and returns that minute.
func (b *bench) reschedule(t *testing.T) time.Time {
	return b.arm(t, time.Minute, func(at time.Time) string { return fmt.Sprintf(`{"spec":{"schedule":%q}}`, daily(at)) },
		func(name string) client.Object { return restartOf(name) })
}

// arm patches one object for each restart that should be due, and returns the common due time, a
// full second or minute. If the patches are not finished before the first claim, it repeats them
// with a later time.
func (b *bench) arm(t *testing.T, full time.Duration, patch func(at time.Time) string, object func(name string) client.Object) time.Time {
	t.Helper()
	for lead := b.lead; ; lead *= 2 {
		at := time.Now().Add(lead + full).Truncate(full).UTC()
		forEach(t, 32, b.due, func(i int) error {
			return b.Patch(t.Context(), object(objectName(i)), client.RawPatch(types.MergePatchType, []byte(patch(at))))
		})
		left := time.Until(at) - claimAhead(b.due)
		if left > time.Second/2 {
			return at
		}
		t.Logf("the first is claimed in %s, and has only just been set: once more", left)
		b.awaitQuiet(t)
	}
}

// measure runs rounds of restarts that are all due at the same time, and checks that each restart
// happened once, with no more writes than allowed.
func (b *bench) measure(t *testing.T, rounds int, arm func(*testing.T) time.Time) outcome {
	t.Helper()
	all := outcome{writes: map[string]int{}}
	for range rounds {
		b.awaitQuiet(t)
		audit, at := b.Audit(t, "tidekeeper/"), arm(t)
		// What follows the requests of arm is not part of the restarts.
		begin := at.Add(-claimAhead(b.due) - 200*time.Millisecond)
		requests := slices.DeleteFunc(b.follow(t, at, audit, b.due), func(r framework.Request) bool { return r.Received.Before(begin) })
		all.add(t, at, requests)
	}
	for key, writes := range all.writes {
		if writes > 4 {
			t.Errorf("the restart %s took %d writes, want at most 4", key, writes)
		}
	}
	return all
}

// follow reads the audit log from a tick on until `count` restarts are recorded, and checks that
// each Deployment was patched once.
func (b *bench) follow(t *testing.T, at time.Time, audit *framework.Audit, count int) []framework.Request {
	t.Helper()
	time.Sleep(time.Until(at.Add(2 * time.Second))) // sleep: until the patches should have been sent, because reading the log takes CPU time
	var requests []framework.Request
	framework.EventuallyWithin(t, 10*time.Minute, "all restarts are recorded", func() error {
		requests = append(requests, audit.Requests(t)...)
		recorded := 0
		for _, r := range requests {
			if r.Verb == "create" && r.Resource == "events" {
				recorded++
			}
		}
		if recorded < count {
			return fmt.Errorf("%d of %d have been", recorded, count)
		}
		return nil
	})
	// Wait until the manager is idle, so that any unexpected requests are recorded too.
	b.awaitQuiet(t)
	requests = append(requests, audit.Requests(t)...)
	patches := map[string]int{}
	for _, r := range requests {
		if r.Resource == "deployments" && r.Verb == "patch" && r.Code < 300 {
			patches[r.Name]++
			if r.Received.Before(at) {
				t.Errorf("Deployment %s was patched %s before its tick", r.Name, at.Sub(r.Received))
			}
		}
	}
	for i := range b.due {
		name := objectName(i)
		if patches[name] != 1 {
			t.Errorf("Deployment %s was patched %d times for one tick, want once", name, patches[name])
		}
	}
	return requests
}

// add counts the requests for one tick's restarts.
func (o *outcome) add(t *testing.T, at time.Time, requests []framework.Request) {
	t.Helper()
	claimed := map[string]bool{}
	for _, r := range requests {
		// An event's name begins with the name of its object.
		name, _, _ := strings.Cut(r.Name, ".")
		switch {
		case r.Verb == "watch":
		case !r.Writes():
			o.reads++
		default:
			o.writes[fmt.Sprintf("of %s at %s", name, at.Format(time.TimeOnly))]++
		}
		switch {
		case r.Code >= 300:
			t.Logf("refused: %s", r)
		case r.Verb != "patch":
		case r.Resource == "deployments":
			o.late = append(o.late, r.Received.Sub(at))
		case r.Resource == "scheduledrestarts" && !claimed[name]:
			claimed[name] = true
			o.claims = append(o.claims, at.Sub(r.Received))
		}
	}
}

// crash kills the manager, and starts it again after restarts have become due.
func (b *bench) crash(t *testing.T) outcome {
	t.Helper()
	b.awaitQuiet(t)
	audit, at := b.Audit(t, "tidekeeper/"), b.request(t)
	time.Sleep(time.Until(at.Add(-time.Second))) // sleep: until just before the tick
	b.manager.Kill(t)
	time.Sleep(time.Until(at.Add(time.Second))) // sleep: until the tick has passed
	b.startManager(t)
	o := outcome{writes: map[string]int{}}
	o.add(t, at, b.follow(t, at, audit, b.due))
	return o
}

// awaitQuiet waits until the manager and the control plane have been idle for a while.
func (b *bench) awaitQuiet(t *testing.T) {
	t.Helper()
	audit, quietSince := b.Audit(t, ""), time.Now()
	framework.EventuallyWithin(t, 10*time.Minute, "all processes are idle", func() error {
		for _, r := range audit.Requests(t) {
			if r.Writes() && (strings.HasPrefix(r.Agent, "tidekeeper/") || strings.HasPrefix(r.Agent, "kube-controller-manager/")) {
				quietSince = time.Now()
			}
		}
		if time.Since(quietSince) < b.quiet {
			return errors.New("they were busy just now")
		}
		return nil
	})
}
