// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDesiredRuntimeClass(t *testing.T) {
	yes := true
	owner := []metav1.OwnerReference{{
		APIVersion: "tidekeeper.dev/v1", Kind: "NodePool", Name: "worker", UID: "pool-worker", Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	for _, tc := range []struct {
		name string
		pool *PoolMaker
		want *nodev1.RuntimeClass
	}{
		{"a pool without a handler has none", MakePool("worker").Taint("gpu", "1", noSchedule), nil},
		{
			"a pool without a selector sends pods to the nodes with its role label",
			MakePool("worker").Handler("runc"),
			&nodev1.RuntimeClass{
				ObjectMeta: metav1.ObjectMeta{Name: "node-pool-worker", OwnerReferences: owner},
				Handler:    "runc",
				Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"node-role.kubernetes.io/worker": ""}},
			},
		},
		{
			"a pool with a selector sends them to the nodes that it selects, tolerating each of its taints with just its value",
			MakePool("worker").Handler("runsc").MatchLabels("disk", "ssd", "zone", "1").
				Taint("gpu", "1", noSchedule).Taint("gpu", "", noExecute).Taint("slow", "x", preferNoSchedule),
			&nodev1.RuntimeClass{
				ObjectMeta: metav1.ObjectMeta{Name: "node-pool-worker", OwnerReferences: owner},
				Handler:    "runsc",
				Scheduling: &nodev1.Scheduling{
					NodeSelector: map[string]string{"disk": "ssd", "zone": "1"},
					Tolerations: []corev1.Toleration{
						{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "1", Effect: noSchedule},
						{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "", Effect: noExecute},
						{Key: "slow", Operator: corev1.TolerationOpEqual, Value: "x", Effect: preferNoSchedule},
					},
				},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, desiredRuntimeClass(tc.pool.Obj())); diff != "" {
				t.Errorf("desiredRuntimeClass (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideRuntimeClass(t *testing.T) {
	pool := func() *PoolMaker {
		return MakePool("worker").Handler("runc").MatchLabels("disk", "ssd").Taint("gpu", "1", noSchedule).Taint("fpga", "", noExecute)
	}
	// ours is the pool's RuntimeClass as it should be, with some change to it.
	ours := func(change func(*nodev1.RuntimeClass)) *nodev1.RuntimeClass {
		rc := desiredRuntimeClass(pool().Obj())
		rc.UID, rc.ResourceVersion = "rc", "7"
		change(rc)
		return rc
	}
	foreign := func(rc *nodev1.RuntimeClass) { rc.OwnerReferences = nil }
	otherUID := func(rc *nodev1.RuntimeClass) {
		rc.OwnerReferences[0].UID = types.UID("a pool of that name that is gone")
	}
	ownedNotControlled := func(rc *nodev1.RuntimeClass) { rc.OwnerReferences[0].Controller = nil }
	otherHandler := func(rc *nodev1.RuntimeClass) { rc.Handler = "kata" }
	none := MakePool("worker")

	for _, tc := range []struct {
		name     string
		pool     *PoolMaker
		existing *nodev1.RuntimeClass
		want     runtimeClassAction
	}{
		{"none is wanted and there is none", none, nil, runtimeClassRight},
		{"there is none", pool(), nil, runtimeClassCreate},
		{"it is as it should be", pool(), ours(func(*nodev1.RuntimeClass) {}), runtimeClassRight},
		{"what is not the pool's is somebody else's affair", pool(), ours(func(rc *nodev1.RuntimeClass) {
			rc.Labels = map[string]string{"team": "a"}
			rc.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}}
		}), runtimeClassRight},
		{"it has no scheduling", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling = nil }), runtimeClassUpdate},
		{"its node selector differs", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.NodeSelector["disk"] = "hdd" }), runtimeClassUpdate},
		{"its node selector asks for more", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.NodeSelector["zone"] = "" }), runtimeClassUpdate},
		{"it lacks a toleration", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.Tolerations = rc.Scheduling.Tolerations[:1] }), runtimeClassUpdate},
		{"it has a toleration too many", pool(), ours(func(rc *nodev1.RuntimeClass) {
			rc.Scheduling.Tolerations = append(rc.Scheduling.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}), runtimeClassUpdate},
		{"a toleration differs", pool(), ours(func(rc *nodev1.RuntimeClass) { rc.Scheduling.Tolerations[0].Value = "2" }), runtimeClassUpdate},
		{"a toleration has an end", pool(), ours(func(rc *nodev1.RuntimeClass) {
			rc.Scheduling.Tolerations[1].TolerationSeconds = new(int64)
		}), runtimeClassUpdate},
		{"its handler differs", pool(), ours(otherHandler), runtimeClassReplace},
		{"its handler differs, and its scheduling: replaced at once", pool(), ours(func(rc *nodev1.RuntimeClass) {
			otherHandler(rc)
			rc.Scheduling = nil
		}), runtimeClassReplace},
		{"the pool has no handler any more", none, ours(func(*nodev1.RuntimeClass) {}), runtimeClassDelete},
		{"one of that name is somebody else's", pool(), ours(foreign), runtimeClassForeign},
		{"one of that name is somebody else's, and differs", pool(), ours(func(rc *nodev1.RuntimeClass) {
			foreign(rc)
			otherHandler(rc)
		}), runtimeClassForeign},
		{"one of that name was a former pool's of that name", pool(), ours(otherUID), runtimeClassForeign},
		{"one of that name has the pool as an owner, but not as its controller", pool(), ours(ownedNotControlled), runtimeClassForeign},
		{"somebody else's is left alone by a pool without a handler", none, ours(foreign), runtimeClassRight},
		{"it is being deleted: what comes after its end is decided then", pool(), ours(func(rc *nodev1.RuntimeClass) {
			otherHandler(rc)
			rc.DeletionTimestamp = &metav1.Time{Time: planTime}
		}), runtimeClassRight},
		{"it is being deleted, and not wanted", none, ours(func(rc *nodev1.RuntimeClass) {
			rc.DeletionTimestamp = &metav1.Time{Time: planTime}
		}), runtimeClassRight},
		{"somebody else's is in the way also while it is being deleted", pool(), ours(func(rc *nodev1.RuntimeClass) {
			foreign(rc)
			rc.DeletionTimestamp = &metav1.Time{Time: planTime}
		}), runtimeClassForeign},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := decideRuntimeClass(tc.pool.Obj(), tc.existing); got != tc.want {
				t.Errorf("decideRuntimeClass = %d; want %d", got, tc.want)
			}
		})
	}
}

// Once it is what the pool asks for, there is nothing more to do: no loop of
// updates.
func TestDesiredRuntimeClassIsRight(t *testing.T) {
	for _, pool := range []*PoolMaker{
		MakePool("a").Handler("runc"),
		MakePool("b").Handler("runc").MatchLabels("disk", "ssd").Taint("gpu", "", noExecute),
	} {
		desired := desiredRuntimeClass(pool.Obj())
		// As the API server gives it back: what is empty is left out.
		stored := desired.DeepCopy()
		if len(stored.Scheduling.Tolerations) == 0 {
			stored.Scheduling.Tolerations = nil
		}
		if got := decideRuntimeClass(pool.Obj(), stored); got != runtimeClassRight {
			t.Errorf("what pool %s asks for is not right, but has to be done: %d", pool.Obj().Name, got)
		}
	}
}
