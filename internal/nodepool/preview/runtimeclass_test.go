// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestPreviewRuntimeClass(t *testing.T) {
	pool := func(handler string) *tidekeeperv1.NodePool {
		p := objects.Pool("gpu").Obj()
		p.Spec.Handler = handler
		return p
	}
	gone := pool("runc")
	gone.DeletionTimestamp = &metav1.Time{Time: objects.PatchTime}
	other := pool("runc")
	other.Spec.Taints = []tidekeeperv1.Taint{{Key: "t", Effect: objects.NoSchedule}}
	ours := plan.DesiredRuntimeClass(pool("runc"))
	notOwned := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-gpu"}, Handler: "x"}
	const name = "node-pool-gpu"
	for _, tc := range []struct {
		name          string
		before, after *tidekeeperv1.NodePool
		existing      *nodev1.RuntimeClass
		want          *RuntimeClass
	}{
		{"none", nil, pool(""), nil, nil},
		{"a new one", nil, pool("runc"), nil, &RuntimeClass{Name: name, Action: "Create", To: "runc"}},
		{"unchanged", pool("runc"), pool("runc"), ours, nil},
		{"already in progress", pool("runc"), pool("runc"), nil, nil},
		{"another handler", pool("runc"), pool("kata"), ours, &RuntimeClass{Name: name, Action: "Replace", From: "runc", To: "kata"}},
		{"other taints", pool("runc"), other, ours, &RuntimeClass{Name: name, Action: "Update", From: "runc", To: "runc"}},
		{"no longer a handler", pool("runc"), pool(""), ours, &RuntimeClass{Name: name, Action: "Delete", From: "runc"}},
		{"the pool is deleted", pool("runc"), gone, ours, &RuntimeClass{Name: name, Action: "Delete", From: "runc"}},
		{"not owned", nil, pool("runc"), notOwned, &RuntimeClass{Name: name, Action: "Conflict", From: "x", To: "runc"}},
		{"not owned already", pool("runc"), pool("kata"), notOwned, nil},
		{"not owned, and stays when the pool is deleted", pool("runc"), gone, notOwned, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, OfRuntimeClass(tc.before, tc.after, tc.existing)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
