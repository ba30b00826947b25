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

// A transition that cannot be printed is tried three more times, each time after a longer
// wait; then all that is pending for the pod is dropped, with a line that says so. Each
// transition is either printed, once, or counted in such a line.
func TestPodsWatchTriesAgainAndDrops(t *testing.T) {
	aNamespace(t, "s3-fails")
	stdout := newOutlet(t)
	w := followTo(t, command{args: []string{"pods", "watch", "-n", "s3-fails", "-o", "json", "--events=false"}}, stdout)
	w.stderr.await(t, 1, `^No such pods yet: waiting for them\.`)
	// gated creates a pod all of whose transitions come at once, as nothing happens to it.
	gated := func(name string) *corev1.Pod {
		t.Helper()
		pod := nowhere("s3-fails")
		pod.Name, pod.Spec.SchedulingGates = name, []corev1.PodSchedulingGate{{Name: "example.com/never"}}
		cluster.Apply(t, pod)
		return pod
	}
	const all = "[Created Phase Pending Condition PodScheduled False SchedulingGated]"

	// For good.
	stdout.fail()
	began := time.Now()
	lost := gated("lost")
	w.stderr.await(t, 1, `^Dropped 3 transitions of pod s3-fails/lost, tried four times: write /dev/stdout: \S`)
	if took, least := time.Since(began), 1400*time.Millisecond; took < least {
		t.Errorf("dropped after %s, want three more tries, after 200, 400 and 800 ms", took)
	}
	// What happens to the pod after that is printed, and only that.
	stdout.work(t)
	cluster.Delete(t, lost)
	steps := stepsOf(t, stdout.lines.await(t, 1, `"kind":"Deleted"`))["lost"]
	if steps[0].Kind == "Deleting" {
		steps = steps[1:] // Both may have come at once.
	}
	if err := diff("[Deleted]", fmt.Sprint(steps)); err != nil {
		t.Errorf("after what was dropped, pod lost %v", err)
	}

	// Briefly: a later try succeeds, and nothing is lost or repeated. On a machine that is
	// too busy for that, it is dropped, and the next pod has its turn.
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
