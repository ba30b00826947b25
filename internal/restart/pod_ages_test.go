// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"

	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Where nothing watches pods, that is said: no pod seems to be young.
func TestPodAgesWithoutPods(t *testing.T) {
	r := &podReader{pods: &podcache.Workloads{}}
	if ages, err := r.ages("shop", &workload.State{Kind: "Deployment", Name: "web"}); err != nil || !ages.Unwatched {
		t.Errorf("the ages are %+v, %v", ages, err)
	}
}

// A DaemonSet that was deleted and made again has no pods of the first one.
func TestPodsOfADaemonSetAreItsOwn(t *testing.T) {
	for perNode, uid := range map[bool]string{true: "1", false: ""} {
		if of := podsOf("shop", &workload.State{Kind: "DaemonSet", Name: "log", UID: "1", PerNode: perNode}); string(of.UID) != uid {
			t.Errorf("per node %t: its pods are controlled by %q, want %q", perNode, of.UID, uid)
		}
	}
}
