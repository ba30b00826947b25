// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// askedInside lists the rights that the API server checks while it serves another request. The
// audit log does not show these checks.
var askedInside = []framework.Right{
	// Checked for a server-side apply that creates the object.
	{Verb: "create", Group: "tidekeeper.dev", Resource: "scheduledrestarts"},
	// The admission plugin OwnerReferencesPermissionEnforcement checks this right when a
	// RuntimeClass is created with a blockOwnerDeletion owner reference to its pool.
	{Verb: "update", Group: "tidekeeper.dev", Resource: "nodepools/finalizers"},
}

// TestRightsToList checks that the manager lists objects if the API server does not stream initial
// lists through watches.
func TestRightsToList(t *testing.T) {
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.StartManager(t, "--controllers=*,pod-count", "--optional-watches=configmaps,secrets")
	lists := map[string]int{}
	framework.Eventually(t, "each kind is listed once", func() error {
		for _, r := range audit.Requests(t) {
			if r.Verb == "list" {
				lists[r.Resource]++
			}
		}
		return diff(map[string]int{
			"nodepools": 1, "nodes": 1, "pods": 1, "runtimeclasses": 1, "customresourcedefinitions": 1, "freezes": 1, "namespaces": 1,
			"scheduledrestarts": 1, "deployments": 1, "statefulsets": 1, "daemonsets": 1, "replicasets": 1,
			"configmaps": 1, "secrets": 1, "poddisruptionbudgets": 1,
		}, lists)
	})
}
