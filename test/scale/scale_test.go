// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

// extent is the size of a cluster and the durations of the measurements.
type extent struct {
	clusterSize
	// rounds is the number of times that each short measurement is repeated.
	rounds int
	// silence is the time without requests that is required before the idle manager is observed.
	silence time.Duration
	// rest is the time for which the idle manager is observed; churn is the time for which it is
	// observed while pods are created and deleted.
	rest, churn time.Duration
	// lead is the minimum time between requesting restarts and their tick (scheduled time).
	lead time.Duration
	// patience is the timeout for each wait in a cluster of this size.
	patience time.Duration
	// oneByOne is the number of nodes that the baseline updates with client-go's rate limits.
	oneByOne int
	// scarce is set if the cluster is too large for the machine's memory, because each control
	// plane component that watches pods caches them completely. The scheduler and the controller
	// manager then do not run: the pods are created already bound and owned, and nothing is rolled
	// out.
	scarce bool
}

var extents = map[string]extent{
	// The size "tiny" takes a minute. It checks that everything can be measured, and that the
	// manager does no unnecessary work.
	"tiny":   {clusterSize: clusterSize{40, 1_200, 60}, rounds: 1, silence: 3 * time.Second, rest: 8 * time.Second, churn: 2 * time.Second, lead: 3 * time.Second, patience: 5 * time.Minute, oneByOne: 5},
	"small":  {clusterSize: clusterSize{100, 3_000, 200}, rounds: 5, silence: 10 * time.Second, rest: 15 * time.Second, churn: 3 * time.Second, lead: 6 * time.Second, patience: 5 * time.Minute, oneByOne: 15},
	"medium": {clusterSize: clusterSize{1_000, 30_000, 2_000}, rounds: 5, silence: 10 * time.Second, rest: 30 * time.Second, churn: 20 * time.Second, lead: 30 * time.Second, patience: 5 * time.Minute, oneByOne: 100},
	"full":   {clusterSize: clusterSize{5_000, 150_000, 10_000}, rounds: 5, silence: 10 * time.Second, rest: time.Minute, churn: 30 * time.Second, lead: 2 * time.Minute, patience: 20 * time.Minute, oneByOne: 100, scarce: true},
}

// run is one run of the benchmark.
type run struct {
	*framework.Cluster
	extent
	report  *report
	etcd    *seed.Etcd
	manager *framework.Manager
	// pprof is the address at which the manager serves profiles.
	pprof string
	// there is the set of existing pod numbers; requested is the sum of these pods' CPU requests,
	// in thousandths of a core.
	there     map[int]bool
	requested int64
}

// nodesAtOnce is the number of nodes that a single sandbox command can add within its timeout, even
// on a busy machine.
const nodesAtOnce = 500

// TestScale measures the manager and prints a table. It fails if the manager does unnecessary work:
// a write or list when idle, or more than one write to a node. It never fails because of durations.
// Without TEST_ALL and SCALE only a part is measured; SCALE=full takes a quarter of an hour or
// more.
func TestScale(t *testing.T) {
	e, known := extents[scaleName()]
	if !known {
		t.Fatalf("SCALE=%s: must be tiny, small, medium or full", scaleName())
	}
	if !whole() {
		e.silence, e.rest = 2*time.Second, 4*time.Second
	}
	if os.Getenv("TEST_ALL") != "" {
		e.rounds = 1 // No test depends on a ratio.
	}
	report := newReport(t, e.clusterSize)
	cluster := startCluster(t, e.scarce, "--audit", "--pod-events=false", fmt.Sprintf("--nodes=%d", min(e.nodes, nodesAtOnce)))
	for have := nodesAtOnce; have < e.nodes; have += nodesAtOnce {
		cluster.Sandbox(t, "nodes", "add", fmt.Sprintf("--count=%d", min(e.nodes-have, nodesAtOnce)))
	}
	r := &run{Cluster: cluster, extent: e, report: report, etcd: seed.Open(t, cluster), pprof: framework.FreeAddress(t), there: map[int]bool{}}
	files := map[string][]byte{}
	// Save the report even if a later measurement fails.
	defer func() {
		report.print(t)
		report.save(t, files)
		report.gate(t)
	}()

	r.step(t, "images on the nodes")
	r.furnish(t)
	r.step(t, "a label on all nodes")
	r.labels(t, files)
	r.step(t, "putting pods there")
	stored := r.populate(t)
	r.awaitIdle(t)
	r.step(t, "start-up")
	r.startUp(t)
	r.step(t, "at rest")
	r.atRest(t, "rest", fmt.Sprintf("at rest, %d nodes and %d pods, kubelets heartbeating", r.nodes, r.pods), files)
	if !whole() {
		r.step(t, "schedules")
		r.schedulesDue(t, files)
		t.Log("TEST_ALL is not set: not measured are memory, rest with leader election and with every trigger, questions, pods that come and go, failover, and what is done one by one")
		return
	}
	r.step(t, "memory")
	r.memory(t, stored, files)
	r.step(t, "at rest with leader election")
	r.atRestElected(t, files)
	if !r.scarce { // The commands and the typed list decode all pods, which takes several GiB.
		r.step(t, "questions")
		r.questions(t)
	}
	r.step(t, "pods come and go")
	r.podChurn(t, files)
	r.step(t, "failover")
	r.failover(t)
	r.step(t, "schedules")
	r.schedulesDue(t, files)
	r.step(t, "every trigger at rest")
	r.triggersAtRest(t, files)
	// For this size most of the time would be spent compiling the benchmarks, and the measured
	// packages have their own tests.
	if scaleName() != "tiny" {
		r.step(t, "one event")
		r.pure(t)
	}
}

// startCluster starts a sandbox. If memory is scarce, its components collect garbage more often;
// the measured processes do not.
func startCluster(t *testing.T, scarce bool, args ...string) *framework.Cluster {
	t.Helper()
	if !scarce {
		return framework.Start(t, args...)
	}
	t.Setenv("GOGC", "40")
	cluster := framework.Start(t, args...)
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func (r *run) step(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s after %s", what, time.Since(r.report.start).Round(time.Second))
}

// whole reports whether everything is measured, instead of only the part that fits into make test.
func whole() bool { return os.Getenv("SCALE") != "" || os.Getenv("TEST_ALL") != "" }

func scaleName() string { return cmp.Or(os.Getenv("SCALE"), "tiny") }
