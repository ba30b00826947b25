// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLeader(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	renewed := func(ago time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-ago)} }
	for _, tt := range []struct {
		name string
		spec coordinationv1.LeaseSpec
		want string
	}{
		{"fresh", coordinationv1.LeaseSpec{HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15)), RenewTime: renewed(2 * time.Second)}, "a"},
		{"a clock that is behind", coordinationv1.LeaseSpec{HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15)), RenewTime: renewed(-time.Minute)}, "a"},
		{"old", coordinationv1.LeaseSpec{HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15)), RenewTime: renewed(31 * time.Second)},
			"a, which holds the lease tidekeeper, has not renewed it for 31s"},
		{"released", coordinationv1.LeaseSpec{HolderIdentity: new(""), LeaseDurationSeconds: new(int32(1)), RenewTime: renewed(0)},
			"the lease tidekeeper has no holder"},
		{"never held", coordinationv1.LeaseSpec{}, "the lease tidekeeper has no holder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Leader(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "tidekeeper"}, Spec: tt.spec}, now)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
