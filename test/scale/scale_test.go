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

// extent is the size and the duration of the measurements.
type extent struct {
	clusterSize
	// rounds is the number of rounds of short measurements.
	rounds int
	// silence is how long an idle manager has sent nothing before it is observed.
	silence time.Duration
	// rest is how long the idle manager is observed, churn how long it is observed while
	// pods are created and deleted.
	rest, churn time.Duration
	// lead is how long the creation of the schedules may take.
	lead time.Duration
	// patience is the timeout of a wait.
	patience time.Duration
	// oneByOne is the number of nodes for a controller with client-go's limits.
	oneByOne int
	// scarce: memory is scarce, as each component of the control plane that watches all
	// pods keeps them in full size. Then the scheduler and the controller manager do not
	// run: the pods are already bound and owned, and nothing is rolled out.
	scarce bool
}

var extents = map[string]extent{
	// tiny takes a minute: it shows that everything is measured, and that the
	// manager does nothing without need.
	"tiny":   {clusterSize: clusterSize{40, 1_200, 60}, rounds: 1, silence: 3 * time.Second, rest: 8 * time.Second, churn: 2 * time.Second, lead: 3 * time.Second, patience: 5 * time.Minute, oneByOne: 5},
	"small":  {clusterSize: clusterSize{100, 3_000, 200}, rounds: 1, silence: 10 * time.Second, rest: 15 * time.Second, churn: 3 * time.Second, lead: 6 * time.Second, patience: 5 * time.Minute, oneByOne: 15},
	"medium": {clusterSize: clusterSize{1_000, 30_000, 2_000}, rounds: 3, silence: 10 * time.Second, rest: 30 * time.Second, churn: 20 * time.Second, lead: 30 * time.Second, patience: 5 * time.Minute, oneByOne: 100},
	"full":   {clusterSize: clusterSize{5_000, 150_000, 10_000}, rounds: 3, silence: 10 * time.Second, rest: time.Minute, churn: 30 * time.Second, lead: 2 * time.Minute, patience: 20 * time.Minute, oneByOne: 100, scarce: true},
}

// run is a run of the benchmark.
type run struct {
	*framework.Cluster
	extent
	report  *report
	etcd    *seed.Etcd
	manager *framework.Manager
	// pprof is where the manager serves profiles.
	pprof string
	// there are the numbers of the pods, requested is the CPU that they request,
	// in thousandths of a core.
	there     map[int]bool
	requested int64
}

// nodesAtOnce is a number of nodes that the sandbox can add within its timeout, however
// busy the machine is.
const nodesAtOnce = 500

// TestScale measures and prints a table. It fails if the manager, however long it takes,
// does more than necessary: a write or list when idle, or more than one write to a
// node. Without TEST_ALL and SCALE it measures a part. With SCALE=full it takes a quarter of an
// hour or more.
func TestScale(t *testing.T) {
	e, known := extents[scaleName()]
	if !known {
		t.Fatalf("SCALE=%s: must be tiny, small, medium or full", scaleName())
	}
	if !whole() {
		e.silence, e.rest = 2*time.Second, 4*time.Second
	}
	report := newReport(t, e.clusterSize)
	cluster := startCluster(t, e.scarce, "--audit", "--pod-events=false", fmt.Sprintf("--nodes=%d", min(e.nodes, nodesAtOnce)))
	for have := nodesAtOnce; have < e.nodes; have += nodesAtOnce {
		cluster.Sandbox(t, "nodes", "add", fmt.Sprintf("--count=%d", min(e.nodes-have, nodesAtOnce)))
	}
	r := &run{Cluster: cluster, extent: e, report: report, etcd: seed.Open(t, cluster), pprof: framework.FreeAddress(t), there: map[int]bool{}}
	files := map[string][]byte{}
	// Even if a later row fails.
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
	if !r.scarce { // The pods as Go types take several GiB, in the commands and beside them.
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
	// As a test this would mostly compile; the pure floors have their own tests.
	if scaleName() != "tiny" {
		r.step(t, "one event")
		r.pure(t)
	}
}

// startCluster starts a sandbox. If memory is scarce, its components run the garbage
// collector more often; the measured processes do not.
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

// whole reports whether all is measured, and not only what make test has time for.
func whole() bool { return os.Getenv("SCALE") != "" || os.Getenv("TEST_ALL") != "" }

func scaleName() string { return cmp.Or(os.Getenv("SCALE"), "tiny") }
