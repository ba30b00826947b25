// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// delays is a queue that records the delays of the requests that are added.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []time.Duration
}

func (d *delays) AddAfter(_ reconcile.Request, after time.Duration) { d.added = append(d.added, after) }

// TestPodsAreListedOncePerSecond checks that changes of pods within a second cause a single list of the
// pods of their node, at the end of that second.
func TestPodsAreListedOncePerSecond(t *testing.T) {
	noon := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	c := clocktesting.NewFakePassiveClock(noon)
	d := newDrains(c)
	status := &tidekeeperv1.NodeMaintenanceStatus{Nodes: map[string]tidekeeperv1.NodeProgress{"a": {UID: "1", StartTime: metav1.NewTime(noon)}}}
	d.watch("weekly", status, []string{"a"}, []string{"a"})
	queue := &delays{}
	changed := func(node string) time.Duration {
		t.Helper()
		queue.added = nil
		d.enqueue(&corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}, queue)
		if len(queue.added) != 1 {
			t.Fatalf("the node is queued %d times", len(queue.added))
		}
		return queue.added[0]
	}
	if got := changed("a"); got != 0 {
		t.Errorf("before the first list: after %s, want at once", got)
	}
	d.look("a")
	c.SetTime(noon.Add(300 * time.Millisecond))
	if got := changed("a"); got != 700*time.Millisecond {
		t.Errorf("300 ms after a list: after %s, want 700ms", got)
	}
	c.SetTime(noon.Add(2 * time.Second))
	if got := changed("a"); got != 0 {
		t.Errorf("two seconds after a list: after %s, want at once", got)
	}
	c.SetTime(noon.Add(-time.Hour))
	if got := changed("a"); got != 0 {
		t.Errorf("after the clock was set back: after %s, want at once", got)
	}
	queue.added = nil
	d.enqueue(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "b"}}, queue)
	if len(queue.added) != 0 {
		t.Error("a node is queued that is not being drained")
	}
}
