// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// resolution is the maximum difference between a timestamp in the API, in whole seconds, and the
// container runtime's time for the same event.
const resolution = time.Second

// startUp is the output of kubectl tide pods timeline -o json for one pod.
type startUp struct {
	Pod     string
	Created time.Time
	Ready   bool
	Slowest struct{ Stage string }
	Stages  []struct {
		Name    string
		Start   time.Time
		Seconds int64
	}
}

// ended returns the time at which the given stage ended.
func (s startUp) ended(name string) time.Time {
	for _, stage := range s.Stages {
		if stage.Name == name {
			return stage.Start.Add(time.Duration(stage.Seconds) * time.Second)
		}
	}
	return time.Time{}
}

// written returns the time at which a container wrote the given line, as recorded by the container
// runtime.
func (n *node) written(t *testing.T, pod, line string) time.Time {
	t.Helper()
	for written := range strings.Lines(n.kubectl(t, "logs", "--timestamps", pod)) {
		if at, text, _ := strings.Cut(strings.TrimSpace(written), " "); text == line {
			parsed, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				t.Fatal(err)
			}
			return parsed
		}
	}
	t.Fatalf("%s has not written %q", pod, line)
	return time.Time{}
}

// timeline checks that the timeline of restarted pods, which take five seconds to become ready,
// matches the container runtime's timestamps.
func (n *node) timeline(t *testing.T) {
	const readyAfter = 5 * time.Second
	d := web("slow", 2, readyAfter)
	n.deploy(t, d)
	restart, tick := n.requestRestart(t, "slow")
	record := n.awaitRecord(t, restart)
	for _, problem := range framework.AllDecided([]time.Time{tick}, restart.Status.History, n.RestartedAt(t, d)) {
		t.Error(problem)
	}
	// The two pods are replaced one after the other, and each takes readyAfter to become ready.
	if took := record.CompletedTime.Sub(record.StartedTime.Time); took < 2*readyAfter-time.Second {
		t.Errorf("the restart took %s, and two pods one after the other take %s", took, 2*readyAfter)
	}

	path, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "pods", "timeline", "-l", "app=slow", "-o", "json", "--kubeconfig", n.Kubeconfig).Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []startUp
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compared := 0
	for _, s := range all {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.Pod}}
		if err := n.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
			continue // An old pod is still terminating.
		}
		compared++
		if !s.Ready {
			t.Errorf("%s is not ready", s.Pod)
		}
		// The stages end in the same order on any machine.
		var before time.Time
		for _, step := range []struct {
			what string
			at   time.Time
		}{
			{"the container is created", n.created(t, pod)},
			{"containers_started", s.ended("containers_started")},
			{"it writes its first line", n.written(t, s.Pod, "started")},
			{"the first probe succeeds", n.written(t, s.Pod, "ready")},
			{"containers_ready", s.ended("containers_ready")},
			{"the restart is complete", record.CompletedTime.Time},
		} {
			t.Logf("%s: %s: %s", s.Pod, step.what, step.at.Format("15:04:05.000"))
			if step.at.Add(resolution).Before(before) {
				t.Errorf("%s: %s at %s, before what comes first, at %s", s.Pod, step.what, step.at, before)
			}
			before = step.at
		}
	}
	if compared != 2 {
		t.Errorf("%d pods were compared, want 2, of %s", compared, out)
	}
}
