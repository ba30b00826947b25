// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestManagedKeys(t *testing.T) {
	team, zone, out := setting.LabelKey("team"), setting.AnnotationKey("zone"), setting.TaintKey("out", "NoSchedule")
	pool := objects.Pool("a").Labels("new", "1").Taint("x", "", corev1.TaintEffectNoExecute).ManagingNothing().Managing(team, zone, out).Obj()
	got := plan.ManagedKeys(pool, func(s setting.Key) bool { return s == out || s == (setting.LabelKey("never managed")) })
	want := tidekeeperv1.ManagedKeys{Labels: []string{"new"}, Taints: []string{"out:NoSchedule", "x:NoExecute"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("managed (-want +got):\n%s", diff)
	}
}
