// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestRestartRefusedByAPolicy checks that a restart whose tick an admission policy rejects says so
// while it is retried, and in its record after its deadline.
func TestRestartRefusedByAPolicy(t *testing.T) {
	const name, why = "policy-refuses", "the API server refused it: patch Deployment policy-refuses: "
	clock := framework.NewStandingClock(t, time.Now().Add(time.Minute).Truncate(time.Second))
	cluster.WithClocks(t).StartManager(t, clock.Flag())
	cluster.AddNodes(t, name, 1)
	d := workload(t, "Deployment", name).(*appsv1.Deployment)
	refuse(t, name, "apps", "deployments", "!has(object.spec.template.metadata.annotations)")
	r := restartOf("Deployment", name)
	r.Spec.StartingDeadlineSeconds = 300
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	tick := cluster.RequestRestart(t, r, clock.Now(t))
	eventuallyRestart(t, r, framework.Patience, "says that it is refused", func() error {
		ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady)
		if !strings.Contains(ready.Message, why) || !strings.HasSuffix(ready.Message, "refused in this test") {
			return fmt.Errorf("it says %q", ready.Message)
		}
		return nil
	})
	clock.Set(t, tick.Add(301*time.Second))
	record := eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeMissed, "DeadlineExceeded")
	if !strings.HasPrefix(record.Message, "not sent before the deadline: "+why) || !strings.HasSuffix(record.Message, "refused in this test") {
		t.Errorf("the record says %q", record.Message)
	}
	if got := restartedAt(t, d); got != "" {
		t.Errorf("it was restarted at %s", got)
	}
}
