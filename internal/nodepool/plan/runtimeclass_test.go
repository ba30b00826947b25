// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestDesiredRuntimeClass(t *testing.T) {
	yes := true
	owner := []metav1.OwnerReference{{
		APIVersion: "tidekeeper.dev/v1", Kind: "NodePool", Name: "worker", UID: "pool-worker", Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	for _, tc := range []struct {
		name string
		pool *objects.PoolBuilder
		want *nodev1.RuntimeClass
	}{
		{"a pool without a handler has none", objects.Pool("worker").Taint("gpu", "1", objects.NoSchedule), nil},
		{
			"a pool without a selector selects the nodes with its role label",
			objects.Pool("worker").Handler("runc"),
			&nodev1.RuntimeClass{
				ObjectMeta: metav1.ObjectMeta{Name: "node-pool-worker", OwnerReferences: owner},
				Handler:    "runc",
				Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"node-role.kubernetes.io/worker": ""}},
			},
		},
		{
			"a pool with a selector selects its nodes, and tolerates each of its taints with exactly its value",
			objects.Pool("worker").Handler("runsc").MatchLabels("disk", "ssd", "zone", "1").
				Taint("gpu", "1", objects.NoSchedule).Taint("gpu", "", objects.NoExecute).Taint("slow", "x", objects.PreferNoSchedule),
			&nodev1.RuntimeClass{
				ObjectMeta: metav1.ObjectMeta{Name: "node-pool-worker", OwnerReferences: owner},
				Handler:    "runsc",
				Scheduling: &nodev1.Scheduling{
					NodeSelector: map[string]string{"disk": "ssd", "zone": "1"},
					Tolerations: []corev1.Toleration{
						{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "1", Effect: objects.NoSchedule},
						{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "", Effect: objects.NoExecute},
						{Key: "slow", Operator: corev1.TolerationOpEqual, Value: "x", Effect: objects.PreferNoSchedule},
					},
				},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plan.DesiredRuntimeClass(tc.pool.Obj())); diff != "" {
				t.Errorf("desiredRuntimeClass (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideRuntimeClass(t *testing.T) {
	pool := func() *objects.PoolBuilder {
		return objects.Pool("worker").Handler("runc").MatchLabels("disk", "ssd").Taint("gpu", "1", objects.NoSchedule).Taint("fpga", "", objects.NoExecute)
	}
	// ours returns the pool's desired RuntimeClass, modified by the function `change`.
	ours := func(change func(*nodev1.RuntimeClass)) *nodev1.RuntimeClass {
		rc := plan.DesiredRuntimeClass(pool().Obj())
		rc.UID, rc.ResourceVersion = "rc", "7"
		change(rc)
		return rc
	}
	notOwned := func(rc *nodev1.RuntimeClass) { rc.OwnerReferences = nil }
	otherUID := func(rc *nodev1.RuntimeClass) {
		rc.OwnerReferences[0].UID = types.UID("a deleted pool of that name")
	}
	ownedNotControlled := func(rc *nodev1.RuntimeClass) { rc.OwnerReferences[0].Controller = nil }
	otherHandler := func(rc *nodev1.RuntimeClass) { rc.Handler = "kata" }
	none := objects.Pool("worker")

	for _, tc := range []struct {
		name     string
		pool     *objects.PoolBuilder
		existing *nodev1.RuntimeClass
		want     plan.RuntimeClassAction
	}{
		{"none is wanted and none exists", none, nil, plan.RuntimeClassUpToDate},
		{"none exists", pool(), nil, plan.RuntimeClassCreate},
		{"it is up to date", pool(), ours(func(*nodev1.RuntimeClass) {}), plan.RuntimeClassUpToDate},
		{"other fields do not matter", pool(), ours(func(rc *nodev1.RuntimeClass) {
			rc.Labels = map[string]string{"team": "a"}
			rc.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}}
		}), plan.RuntimeClassUpToDate},
		{"it has no scheduling", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling = nil }), plan.RuntimeClassUpdate},
		{"its node selector differs", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.NodeSelector["disk"] = "hdd" }), plan.RuntimeClassUpdate},
		{"its node selector asks for more", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.NodeSelector["zone"] = "" }), plan.RuntimeClassUpdate},
		{"it lacks a toleration", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.Tolerations = rc.Scheduling.Tolerations[:1] }), plan.RuntimeClassUpdate},
		{"it has an additional toleration", pool(), ours(func(rc *nodev1.RuntimeClass) {
			rc.Scheduling.Tolerations = append(rc.Scheduling.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}), plan.RuntimeClassUpdate},
		{"a toleration differs", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.Tolerations[0].Value = "2" }), plan.RuntimeClassUpdate},
		{"a toleration has a time limit", pool(), ours(func(rc *nodev1.RuntimeClass) {
			rc.Scheduling.Tolerations[1].TolerationSeconds = new(int64)
		}), plan.RuntimeClassUpdate},
		{"its handler differs", pool(), ours(otherHandler), plan.RuntimeClassReplace},
		{"its handler and its scheduling differ: one replacement", pool(), ours(func(rc *nodev1.RuntimeClass) {
			otherHandler(rc)
			rc.Scheduling = nil
		}), plan.RuntimeClassReplace},
		{"the pool no longer has a handler", none, ours(func(*nodev1.RuntimeClass) {}), plan.RuntimeClassDelete},
		{"one of that name is not the pool's", pool(), ours(notOwned), plan.RuntimeClassNotOwned},
		{"one of that name is not the pool's, and differs", pool(), ours(func(rc *nodev1.RuntimeClass) {
			notOwned(rc)
			otherHandler(rc)
		}), plan.RuntimeClassNotOwned},
		{"one of that name was owned by a deleted pool of the same name", pool(), ours(otherUID), plan.RuntimeClassNotOwned},
		{"one of that name has the pool as an owner, but not as its controller", pool(), ours(ownedNotControlled), plan.RuntimeClassNotOwned},
		{"a pool without a handler ignores one that it does not own", none, ours(notOwned), plan.RuntimeClassUpToDate},
		{"it is being deleted: the next step is decided afterwards", pool(), ours(func(rc *nodev1.RuntimeClass) {
			otherHandler(rc)
			rc.DeletionTimestamp = &metav1.Time{Time: objects.PatchTime}
		}), plan.RuntimeClassUpToDate},
		{"it is being deleted, and not wanted", none, ours(func(rc *nodev1.RuntimeClass) {
			rc.DeletionTimestamp = &metav1.Time{Time: objects.PatchTime}
		}), plan.RuntimeClassUpToDate},
		{"one that is not the pool's is a conflict even while it is being deleted", pool(), ours(func(rc *nodev1.RuntimeClass) {
			notOwned(rc)
			rc.DeletionTimestamp = &metav1.Time{Time: objects.PatchTime}
		}), plan.RuntimeClassNotOwned},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := plan.DecideRuntimeClass(tc.pool.Obj(), tc.existing); got != tc.want {
				t.Errorf("decideRuntimeClass = %d; want %d", got, tc.want)
			}
		})
	}
}

// TestDesiredRuntimeClassIsRight checks that the desired RuntimeClass itself counts as up to date,
// so that there is no update loop.
func TestDesiredRuntimeClassIsRight(t *testing.T) {
	for _, pool := range []*objects.PoolBuilder{
		objects.Pool("a").Handler("runc"),
		objects.Pool("b").Handler("runc").MatchLabels("disk", "ssd").Taint("gpu", "", objects.NoExecute),
	} {
		desired := plan.DesiredRuntimeClass(pool.Obj())
		// The API server omits empty fields.
		stored := desired.DeepCopy()
		if len(stored.Scheduling.Tolerations) == 0 {
			stored.Scheduling.Tolerations = nil
		}
		if got := plan.DecideRuntimeClass(pool.Obj(), stored); got != plan.RuntimeClassUpToDate {
			t.Errorf("the RuntimeClass that pool %s asks for is not up to date: action %d", pool.Obj().Name, got)
		}
	}
}
