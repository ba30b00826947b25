// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package badspec

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/fault/badspec/mutate"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var restarts = []map[string]any{
	{
		"targetRef": map[string]any{"kind": "Deployment", "name": mutate.Placeholder},
		// Not while this runs.
		"schedule": "0 3 29 2 *", "timeZone": "Europe/Berlin", "suspend": false,
		"startingDeadlineSeconds": 600, "spreadSeconds": 60, "precondition": "Healthy",
		"progressDeadlineSeconds": 600, "failureLimit": 3, "historyLimit": 10,
	},
	{
		"targetRef": map[string]any{"kind": "StatefulSet", "name": mutate.Placeholder + "-other"},
		"schedule":  "* * * * *", "timeZone": "America/St_Johns", "suspend": true,
		"startingDeadlineSeconds": 1, "spreadSeconds": 0, "precondition": "None",
		"progressDeadlineSeconds": 1, "failureLimit": 1, "historyLimit": 1,
	},
}

func TestScheduledRestart(t *testing.T) {
	cluster.AddNodes(t, "worker", 8)
	standing := framework.ScheduledRestart("standing")
	create(t, standing, restarts[0])
	kind{crd: "tidekeeper.dev_scheduledrestarts.yaml", examples: restarts, standing: standing, play: playRestart}.run(t)
}

// playRestart edits a ScheduledRestart with a Deployment of its own, in the midst
// of a restart or not, and heals it. Then it restarts as ever, and no tick has
// been sent twice.
func playRestart(t testing.TB, e edit) {
	d := framework.Deployment(e.name, 1, framework.App)
	cluster.Apply(t, d)
	eventually(t, d, "is up", func() error { return up(d) })
	r := framework.ScheduledRestart(e.name)
	create(t, r, restarts[0])
	rests := func() {
		t.Helper()
		eventually(t, r, "is at rest", func() error {
			if r.Status.Active != nil {
				return fmt.Errorf("it restarts for %s", r.Status.Active.ScheduledTime)
			}
			return framework.ReadyIs(r.Status.Conditions, r.Generation, "Scheduled")
		})
	}
	rests()

	if e.underWay {
		cluster.RequestRestart(t, r, time.Now())
	}
	change(t, r, e.Patch(e.name))
	if !e.underWay {
		eventually(t, r, "is looked at", func() error {
			if r.Status.ObservedGeneration != r.Generation {
				return errors.New("it is not")
			}
			return nil
		})
	}
	change(t, r, mutate.PatchTo(restarts[0], e.name))
	rests()

	// A tick is a second: this one is after any that was before.
	tick := cluster.RequestRestart(t, r, time.Now().Add(time.Second))
	eventually(t, r, "restarts again", func() error {
		if len(r.Status.History) == 0 || !r.Status.History[0].ScheduledTime.Time.Equal(tick) {
			return fmt.Errorf("not yet: %+v", r.Status.History)
		}
		if last := r.Status.History[0]; last.Outcome != tidekeeperv1.OutcomeSucceeded {
			t.Fatalf("it has %s: %s: %s", last.Outcome, last.Reason, last.Message)
		}
		return nil
	})
	onceEach(t, d)
}

func up(d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas {
		return errors.New("not yet")
	}
	return nil
}

// onceEach fails the test if a tick was sent twice. Each template makes a
// ReplicaSet, and an old template that comes back makes none.
func onceEach(t testing.TB, d *appsv1.Deployment) {
	t.Helper()
	cluster.Refresh(t, d)
	sets := &appsv1.ReplicaSetList{}
	if err := cluster.List(t.Context(), sets, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	if int64(len(sets.Items)) != d.Generation {
		t.Errorf("the Deployment's template was written %d times, for %d ticks", d.Generation-1, len(sets.Items)-1)
	}
}
