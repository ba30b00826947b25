// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

var (
	deployment = framework.Deployment
	app        = framework.App
)

// eventuallyReady waits until all pods of a Deployment are ready.
func eventuallyReady(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	framework.Eventually(t, "deployment "+d.Name+" is ready", func() error {
		cluster.Refresh(t, d)
		return diff(*d.Spec.Replicas, d.Status.ReadyReplicas)
	})
}
