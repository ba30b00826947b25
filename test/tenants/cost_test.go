// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// What the manager may cost with all tricks played, on 103 nodes with some
// hundreds of pods.
const (
	// mostMemory is the most memory that it may ever have had, in MiB.
	mostMemory = 256
	// moreSeries is how many metric series there may be more than at first: of
	// outcomes and reasons that were not before.
	moreSeries = 250
	// mostWrites is how many writes a minute it may send: of some 330 schedules of
	// the tenant that are due each minute, two to the status and an event.
	mostWrites = 1100
)

// memory returns the resident memory of the manager in MiB.
func memory(t *testing.T, manager *framework.Manager) int { return memoryOf(t, manager, "VmRSS") }

func memoryOf(t *testing.T, manager *framework.Manager, field string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", manager.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + field + `:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no %s in\n%s", field, status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// cost is what the manager has cost since the beginning.
type cost struct {
	manager *framework.Manager
	audit   *framework.Audit
	since   time.Time
	series  int
}

func startCost(t *testing.T, manager *framework.Manager, audit *framework.Audit) *cost {
	t.Helper()
	return &cost{manager: manager, audit: audit, since: time.Now(), series: seriesOf(t, manager)}
}

func seriesOf(t *testing.T, manager *framework.Manager) int {
	t.Helper()
	series := 0
	for _, family := range manager.ReadMetrics(t) {
		series += len(family.GetMetric())
	}
	return series
}

func (c *cost) check(t *testing.T) {
	if most := memoryOf(t, c.manager, "VmHWM"); most > mostMemory {
		t.Errorf("the manager had %d MiB at the most, want %d", most, mostMemory)
	} else {
		t.Logf("the manager had %d MiB at the most, and has %d", most, memory(t, c.manager))
	}
	if series := seriesOf(t, c.manager); series > c.series+moreSeries {
		t.Errorf("there are %d metric series, and were %d", series, c.series)
	} else {
		t.Logf("there are %d metric series, and were %d", series, c.series)
	}
	perMinute, byKind := map[time.Time]int{}, map[string]int{}
	for _, q := range c.audit.Requests(t) {
		if q.Writes() {
			perMinute[q.Received.Truncate(time.Minute)]++
			byKind[fmt.Sprintf("%s %s/%s %d", q.Verb, q.Resource, q.Subresource, q.Code)]++
		}
	}
	t.Logf("writes of each minute: %v", perMinute)
	t.Logf("writes of each kind: %v", byKind)
	for minute, writes := range perMinute {
		if writes > mostWrites {
			t.Errorf("%d writes in the minute from %s, want %d at the most", writes, minute.Format(time.TimeOnly), mostWrites)
		}
	}
}

// hugeAnnotations: what cannot be understood is told in a few words, and what does
// not concern the manager is not kept.
func (s *stage) hugeAnnotations(t *testing.T) {
	before, log := memory(t, s.manager), len(s.manager.Log())
	huge := strings.Repeat("<huge>", 40_000) // 240 kB of the 256 that all may have.
	var all []client.Object
	for i := range 12 {
		pod := bound(fmt.Sprint("huge-", i), fmt.Sprintf("herd-%d", i+1), 0)
		pod.Annotations = map[string]string{"example.com/huge": huge}
		pod.Labels = map[string]string{}
		for n := range 1000 {
			pod.Labels[fmt.Sprintf("example.com/label-%04d", n)] = strings.Repeat("v", 63)
		}
		all = append(all, pod)
	}
	for i := range 4 {
		d := workload(evil[1], fmt.Sprint("huge-", i), 0, nil)
		d.SetAnnotations(map[string]string{tidekeeperv1.OptInAnnotation: "true", tidekeeperv1.OptInScheduleAnnotation: huge})
		all = append(all, d, ask(restart(evil[1], fmt.Sprint("request-", i), func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true }), huge))
	}
	s.makes(t, all...)
	for i := range 4 {
		for kind, name := range map[string]string{"Deployment": fmt.Sprint("huge-", i), "ScheduledRestart": fmt.Sprint("request-", i)} {
			framework.Eventually(t, kind+" "+name+" is told what is wrong", func() error {
				if len(cluster.Events(t, kind, name)) == 0 {
					return errNotYet
				}
				return nil
			})
		}
	}
	s.served(t)
	if grown := len(s.manager.Log()) - log; grown > 200_000 {
		t.Errorf("the manager has logged %d bytes more", grown)
	}
	t.Logf("the manager has %d MiB, and had %d", memory(t, s.manager), before)
}

// manyEvents: what is told is not more than what was done.
func (s *stage) manyEvents(t *testing.T) {
	audit := cluster.Audit(t, "tidekeeper/")
	const edits = 150
	r := restart(evil[0], "chatter", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true })
	s.makes(t, r)
	for i := range edits {
		before := r.DeepCopy()
		if err := s.mallory.Patch(t.Context(), ask(r, fmt.Sprint("nonsense ", i)), client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, "it is told what is wrong", func() error {
		if len(cluster.Events(t, "ScheduledRestart", "chatter")) == 0 {
			return errNotYet
		}
		return nil
	})
	s.served(t)
	about := 0
	for _, q := range audit.Requests(t) {
		if q.Writes() && (strings.HasPrefix(q.Name, "chatter") || q.Resource == "events" && q.Namespace == evil[0]) {
			about++
		}
	}
	if about > 3*edits {
		t.Errorf("%d writes for %d edits", about, edits)
	}
	t.Logf("%d writes for %d edits", about, edits)
}

// calendar: the plugin, of whom sees all namespaces, does not hold every minute of
// a month for each of the tenant's schedules.
func (s *stage) calendar(t *testing.T) {
	path, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, "restarts", "next", "-A", "--for=31d", "--kubeconfig", cluster.Kubeconfig)
	start := time.Now()
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took, most := time.Since(start), command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss/1024
	if most > 300 || took > 2*framework.Patience {
		t.Errorf("it took %s and %d MiB", took, most)
	} else {
		t.Logf("it took %s and %d MiB", took, most)
	}
	if !strings.Contains(string(out), "web") && !strings.Contains(string(out), "STARTS") {
		t.Errorf("it says\n%.2000s", out)
	}
}
