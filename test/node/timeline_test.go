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

// agree is how far the times of the API may be from those of the container runtime: they are
// in whole seconds, and the kubelet hears of a container's start a moment later, and of its
// readiness by a probe every second.
const agree = 2 * time.Second

// startUp is what kubectl tide pods timeline -o json says of a pod.
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

// ended returns when a stage ended.
func (s startUp) ended(name string) time.Time {
	for _, stage := range s.Stages {
		if stage.Name == name {
			return stage.Start.Add(time.Duration(stage.Seconds) * time.Second)
		}
	}
	return time.Time{}
}

// written returns when a container wrote a line, by the clock of the container runtime.
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

// timeline: the plugin says of the pods of a restart what the container runtime says. They
// take five seconds to become ready.
func (n *node) timeline(t *testing.T) {
	const readyAfter = 5 * time.Second
	d := web("slow", 2, readyAfter)
	n.deploy(t, d)
	restart, tick := n.requestRestart(t, "slow")
	record := n.awaitRecord(t, restart)
	for _, problem := range framework.AllDecided([]time.Time{tick}, restart.Status.History, n.RestartedAt(t, d)) {
		t.Error(problem)
	}
	// One after the other, each of which took that long.
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
			continue // One from before the restart, which is ending.
		}
		compared++
		if !s.Ready || s.Slowest.Stage != "containers_ready" {
			t.Errorf("%s is ready: %t, and its slowest stage is %s", s.Pod, s.Ready, s.Slowest.Stage)
		}
		for _, c := range []struct {
			what      string
			says, was time.Time
		}{
			{"containers_started and the creation of the container", s.ended("containers_started"), n.created(t, pod)},
			{"containers_started and the first line that it wrote", s.ended("containers_started"), n.written(t, s.Pod, "started")},
			{"containers_ready and the first probe that succeeded", s.ended("containers_ready"), n.written(t, s.Pod, "ready")},
		} {
			t.Logf("%s: %s: %s and %s", s.Pod, c.what, c.says.Format("15:04:05"), c.was.Format("15:04:05.000"))
			if apart := c.says.Sub(c.was).Abs(); apart > agree {
				t.Errorf("%s: %s are %s apart: %s and %s", s.Pod, c.what, apart, c.says, c.was)
			}
		}
	}
	if compared != 2 {
		t.Errorf("%d pods were compared, want 2, of %s", compared, out)
	}
}
