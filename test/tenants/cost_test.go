// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// Limits on the manager's cost while all tricks run, on 103 nodes with some hundreds of pods.
const (
	// mostMemory limits the manager's peak memory, in MiB.
	mostMemory = 256
	// moreSeries limits the number of metric series that the tricks may add, for new outcomes and
	// reasons.
	moreSeries = 250
	// mostWrites limits the manager's writes per started minute. About 330 of the tenant's
	// schedules are due each minute, each with two status writes and an event. The time that a busy
	// machine takes for them is not limited.
	mostWrites = 1100
	// longestLine limits the length of a log line, in bytes.
	longestLine = 8192
	// mostOfPlugin limits the peak memory of a plugin command, in MiB.
	mostOfPlugin = 200
)

// memory returns the manager's resident memory in MiB. memoryAtMost returns its peak.
func memory(t *testing.T, manager *framework.Manager) int {
	now, _ := framework.ResidentMiB(t, manager.Pid())
	return int(now)
}

func memoryAtMost(t *testing.T, manager *framework.Manager) int {
	_, most := framework.ResidentMiB(t, manager.Pid())
	return int(most)
}

// cost measures the manager's cost from a start time on, at which the manager was idle.
type cost struct {
	manager *framework.Manager
	audit   *framework.Audit
	since   time.Time
	series  int
	// memory is the peak memory before the start time, in MiB.
	memory int
}

func (s *stage) startCost(t *testing.T) *cost {
	t.Helper()
	return &cost{
		manager: s.manager, audit: cluster.Audit(t, "tidekeeper/"), since: time.Now(),
		series: seriesOf(t, s.manager), memory: memoryAtMost(t, s.manager),
	}
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
	if most := memoryAtMost(t, c.manager); most > mostMemory {
		t.Errorf("the manager used up to %d MiB, want %d; at rest it was %d", most, mostMemory, c.memory)
	} else {
		t.Logf("the manager used up to %d MiB, %d at rest, and uses %d now", most, c.memory, memory(t, c.manager))
	}
	if series := seriesOf(t, c.manager); series > c.series+moreSeries {
		t.Errorf("there are %d metric series, before there were %d", series, c.series)
	} else {
		t.Logf("there are %d metric series, before there were %d", series, c.series)
	}
	writes, byKind := 0, map[string]int{}
	for _, q := range c.audit.Requests(t) {
		if q.Writes() {
			writes++
			byKind[fmt.Sprintf("%s %s/%s %d", q.Verb, q.Resource, q.Subresource, q.Code)]++
		}
	}
	minutes := int(time.Now().Truncate(time.Minute).Sub(c.since.Truncate(time.Minute)) / time.Minute)
	t.Logf("%d writes in %d minutes that have begun: %v", writes, minutes, byKind)
	if most := mostWrites * (minutes + 1); writes > most {
		t.Errorf("%d writes, want at most %d", writes, most)
	}
}

// hugeAnnotations sets huge annotations. The manager must report an invalid value in a few words,
// and must not keep annotations in memory that it does not use.
func (s *stage) hugeAnnotations(t *testing.T) {
	before, log := memory(t, s.manager), len(s.manager.Log())
	huge := strings.Repeat("<huge>", 40_000) // 240 kB of the 256 kB that the annotations of an object may have in total.
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
			framework.Eventually(t, kind+" "+name+" has an event that says what is wrong", func() error {
				if len(cluster.Events(t, kind, name)) == 0 {
					return errNotYet
				}
				return nil
			})
		}
	}
	s.servedByManager(t)
	for line := range strings.Lines(s.manager.Log()[log:]) {
		if len(line) > longestLine {
			t.Errorf("the manager has logged a line of %d bytes: %.200s…", len(line), line)
		}
	}
	t.Logf("the manager uses %d MiB, before %d", memory(t, s.manager), before)
}

// manyEvents edits an object many times, and checks that the manager writes at most three times per
// edit.
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
	framework.Eventually(t, "an event says what is wrong", func() error {
		if len(cluster.Events(t, "ScheduledRestart", "chatter")) == 0 {
			return errNotYet
		}
		return nil
	})
	s.servedByManager(t)
	about := 0
	for _, q := range audit.Requests(t) {
		if q.Writes() && strings.HasPrefix(q.Name, "chatter") {
			about++
		}
	}
	if about > 3*edits {
		t.Errorf("%d writes for %d edits", about, edits)
	}
	t.Logf("%d writes for %d edits", about, edits)
}

// calendar runs the plugin's calendar of restarts as a user with access to all namespaces. The
// plugin must not keep every minute of a month in memory for each of the tenant's schedules.
func (s *stage) calendar(t *testing.T) {
	path, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, "restarts", "next", "-A", "--for=31d", "--kubeconfig", cluster.Kubeconfig)
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	complaints := &bytes.Buffer{}
	command.Stderr = complaints
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	if _, err := io.CopyN(out, pipe, 1); err != nil {
		t.Fatalf("it says nothing: %v, %v: %s", err, command.Wait(), complaints)
	}
	// The command is still running, because its output is larger than a pipe's buffer. Once it has
	// exited, its reported peak memory would include its parent's memory at the time of the fork.
	_, most := framework.ResidentMiB(t, command.Process.Pid)
	_, err = io.Copy(out, pipe)
	if err := errors.Join(err, command.Wait()); err != nil {
		t.Fatalf("%v: %s", err, complaints)
	}
	if most == 0 || most > mostOfPlugin {
		t.Errorf("it took %.0f MiB, want at most %d", most, mostOfPlugin)
	} else {
		t.Logf("it took %.0f MiB", most)
	}
	if !strings.Contains(out.String(), "web") && !strings.Contains(out.String(), "STARTS") {
		t.Errorf("it says\n%.2000s", out.String())
	}
}
