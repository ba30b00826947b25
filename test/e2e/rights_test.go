// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
)

// Where the API server does not stream its lists to watches, they are asked for.
func TestRightsToList(t *testing.T) {
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	audit := cluster.Audit(t, "tidekeeper/")
	cluster.StartManager(t, "--controllers=*,pod-count")
	lists := map[string]int{}
	for _, r := range audit.Requests(t) {
		if r.Verb == "list" {
			lists[r.Resource]++
		}
	}
	if err := diff(map[string]int{
		"nodepools": 1, "nodes": 1, "pods": 1, "runtimeclasses": 1,
		"scheduledrestarts": 1, "deployments": 1, "statefulsets": 1, "daemonsets": 1, "replicasets": 1,
	}, lists); err != nil {
		t.Errorf("lists %v", err)
	}
}
