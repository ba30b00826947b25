// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

var (
	deployment = framework.Deployment
	app        = framework.App
)

// eventuallyReady waits until all of a Deployment's replicas are ready.
func eventuallyReady(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	framework.Eventually(t, "deployment "+d.Name+" is ready", func() error {
		cluster.Refresh(t, d)
		return diff(*d.Spec.Replicas, d.Status.ReadyReplicas)
	})
}

// nextSecond waits for the next whole second. Timestamps are in whole seconds, so the timestamps of
// later events are then later than all earlier timestamps.
func nextSecond(t *testing.T) {
	t.Helper()
	second := time.Now().Truncate(time.Second)
	framework.Eventually(t, "the second is over", func() error {
		if now := time.Now(); !now.Truncate(time.Second).After(second) {
			return fmt.Errorf("it is %s", now)
		}
		return nil
	})
}
