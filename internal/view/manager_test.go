// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestOutdated(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	held := func(namespace, holder string, ago time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tidekeeper"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-ago)},
			},
		}
	}
	pool := func(name string, generation, observed int64, created, edited time.Duration) *tidekeeperv1.NodePool {
		p := &tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation, CreationTimestamp: metav1.NewTime(now.Add(-created))}}
		p.Status.ObservedGeneration = observed
		p.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Time: &metav1.Time{Time: now.Add(-edited)}},
			{Manager: "tidekeeper", Subresource: "status", Time: &metav1.Time{Time: now}},
		}
		return p
	}
	fresh, stale := held("ops", "a", time.Second), held("tidekeeper-system", "b", time.Hour)
	for _, tt := range []struct {
		name   string
		leases []coordinationv1.Lease
		pools  []*tidekeeperv1.NodePool
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"one leads", []coordinationv1.Lease{stale, fresh}, nil, ""},
		{"one leads, and a pool waits", []coordinationv1.Lease{fresh}, []*tidekeeperv1.NodePool{pool("p", 2, 1, time.Hour, time.Hour)}, ""},
		{"none leads", []coordinationv1.Lease{held("old", "c", 2*time.Hour), stale}, nil,
			"no manager leads: b, which holds the lease tidekeeper, has not renewed it for 1h0m0s (namespace tidekeeper-system)"},
		{"released", []coordinationv1.Lease{held("ops", "", time.Second)}, nil, "no manager leads: the lease tidekeeper has no holder (namespace ops)"},
		{"no election, all observed", nil, []*tidekeeperv1.NodePool{pool("p", 2, 2, time.Hour, time.Hour)}, ""},
		{"no election, just edited", nil, []*tidekeeperv1.NodePool{pool("p", 2, 1, time.Hour, time.Second)}, ""},
		{"no election, never observed", nil, []*tidekeeperv1.NodePool{pool("p", 1, 0, time.Hour, time.Hour)},
			"NodePool p was changed 60m ago and no manager has observed it"},
		{"no election, edited", nil, []*tidekeeperv1.NodePool{pool("p", 2, 1, time.Hour, time.Minute), pool("q", 3, 1, 2*time.Hour, 30*time.Minute)},
			"NodePool q was changed 30m ago and no manager has observed it, nor 1 other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var u Unobserved
			for _, p := range tt.pools {
				u.Add("NodePool", p, p.Status.ObservedGeneration, now)
			}
			if got := Outdated(ManagerOf(tt.leases, now), u, now); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
