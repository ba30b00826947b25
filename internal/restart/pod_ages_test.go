// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"

	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// TestPodAgesWithoutPods checks that the ages are reported as unknown if no controller watches
// pods.
func TestPodAgesWithoutPods(t *testing.T) {
	r := &podReader{pods: &podcache.Workloads{}}
	if ages, err := r.ages("shop", &workload.State{Kind: "Deployment", Name: "web"}); err != nil || !ages.Unwatched {
		t.Errorf("the ages are %+v, %v", ages, err)
	}
}

// TestPodsOfADaemonSetAreItsOwn checks that a DaemonSet that was deleted and created again does not
// own the pods of the deleted DaemonSet.
func TestPodsOfADaemonSetAreItsOwn(t *testing.T) {
	for perNode, uid := range map[bool]string{true: "1", false: ""} {
		if of := podsOf("shop", &workload.State{Kind: "DaemonSet", Name: "log", UID: "1", PerNode: perNode}); string(of.UID) != uid {
			t.Errorf("per node %t: its pods are controlled by %q, want %q", perNode, of.UID, uid)
		}
	}
}
