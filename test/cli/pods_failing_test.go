// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestPodsWatchTriesAgainAndDrops checks that the printing of a transition is retried three times,
// with growing delays. If it still fails, all pending transitions of the pod are dropped, and a
// later line counts them. Each transition must be either printed once or counted in such a line.
func TestPodsWatchTriesAgainAndDrops(t *testing.T) {
	aNamespace(t, "s3-fails")
	stdout := newOutlet(t)
	w := followTo(t, command{args: []string{"pods", "watch", "-n", "s3-fails", "-o", "json", "--events=false"}}, stdout)
	w.stderr.await(t, 1, `^No such pods yet: waiting for them\.`)
	// gated creates a pod with a scheduling gate, which has all of its transitions immediately.
	gated := func(name string) *corev1.Pod {
		t.Helper()
		pod := nowhere("s3-fails")
		pod.Name, pod.Spec.SchedulingGates = name, []corev1.PodSchedulingGate{{Name: "example.com/never"}}
		cluster.Apply(t, pod)
		return pod
	}
	const all = "[Created Phase Pending Condition PodScheduled False SchedulingGated]"

	// A permanent failure: all further writes fail.
	stdout.fail()
	began := time.Now()
	lost := gated("lost")
	w.stderr.await(t, 1, `^Dropped 3 transitions of pod s3-fails/lost, tried four times: write /dev/stdout: \S`)
	if took, least := time.Since(began), 1400*time.Millisecond; took < least {
		t.Errorf("dropped after %s, want three more tries, after 200, 400 and 800 ms", took)
	}
	// Only the pod's later transitions are printed.
	stdout.work(t)
	cluster.Delete(t, lost)
	steps := stepsOf(t, stdout.lines.await(t, 1, `"kind":"Deleted"`))["lost"]
	if steps[0].Kind == "Deleting" {
		steps = steps[1:] // The transitions Deleting and Deleted may have arrived together.
	}
	if err := diff("[Deleted]", fmt.Sprint(steps)); err != nil {
		t.Errorf("after what was dropped, pod lost %v", err)
	}

	// A short failure: a retry succeeds, and no transition is lost or repeated. On a very busy
	// machine the transitions may be dropped nevertheless; in that case the test tries again with
	// another pod.
	for n := range 50 {
		name := fmt.Sprint("brief-", n)
		stdout.fail()
		gated(name)
		stdout.work(t)
		var lines []string
		var drop string
		framework.Eventually(t, "pod "+name+" is reported", func() error {
			for {
				select {
				case line := <-stdout.lines:
					lines = append(lines, line)
					continue
				case drop = <-w.stderr:
				default:
				}
				break
			}
			if drop == "" && len(stepsOf(t, lines)[name]) < 3 {
				return fmt.Errorf("lines %q", lines)
			}
			return nil
		})
		if strings.HasPrefix(drop, "Dropped ") {
			continue
		}
		if err := diff(all, fmt.Sprint(stepsOf(t, lines)[name])); err != nil || drop != "" {
			t.Errorf("pod %s %v; on stderr %q", name, err, drop)
		}
		return
	}
	t.Error("each time it was dropped, however soon writes succeeded again")
}
