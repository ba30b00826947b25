// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestRestartByAClockAhead checks that a restart succeeds if another client, whose clock is some
// minutes ahead, restarts the workload meanwhile.
func TestRestartByAClockAhead(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "ahead", 1)
	d := held(t, "ahead")
	r := suspendedRestart(t, "ahead")
	tick := request(t, r)
	eventuallyRestartIs(t, r, "Restarting")
	framework.Eventually(t, "the restart is sent", func() error { return diff(tick.Format(time.RFC3339), restartedAt(t, d)) })
	cluster.Change(t, d, func() {
		d.Spec.Template.Annotations[tidekeeperv1.RestartedAtAnnotation] = time.Now().Add(4 * time.Minute).UTC().Format(time.RFC3339)
	})
	eventuallyLetGo(t, d, r, tick)
}

// TestUndoWhileNobodyLeads checks that a restart that is undone while there is no leader is
// reported as rolled back and not sent again, although the undo removes every trace of the restart
// from the Deployment.
func TestUndoWhileNobodyLeads(t *testing.T) {
	manager := cluster.StartManager(t)
	cluster.AddNodes(t, "undo", 1)
	d := held(t, "undo")
	r := suspendedRestart(t, "undo")
	tick := request(t, r)
	framework.Eventually(t, "the restart is rolled out", func() error {
		sets := &appsv1.ReplicaSetList{}
		if err := cluster.List(t.Context(), sets, client.InNamespace(d.Namespace), client.MatchingLabels{"app": "undo"}); err != nil {
			return err
		}
		if len(sets.Items) != 2 {
			return errors.New("it is not")
		}
		return nil
	})
	manager.Kill(t)
	if out, err := cluster.Kubectl("", "rollout", "undo", "deployment/undo"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rolledOut(t, "Deployment", "undo")
	cluster.Refresh(t, d)
	generation := d.Generation
	cluster.StartManager(t)
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeFailed, "Reverted")
	if got := restartedAt(t, d); got != "" || d.Generation != generation {
		t.Errorf("it was restarted again, at %s", got)
	}
}
