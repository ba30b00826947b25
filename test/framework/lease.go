// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ElectUntilReleased returns flags for managers with leader election. A standby takes over only
// when the leader has released its lease, or after [Cluster.ExpireLease], so that no leader loses
// its lease because the machine is busy. The lease is deleted when the test ends.
func (c *Cluster) ElectUntilReleased(t testing.TB) []string {
	t.Helper()
	c.Delete(t, managersLease(ManagerNamespace))
	t.Cleanup(func() { c.Delete(t, managersLease(ManagerNamespace)) })
	return ElectUntilReleasedIn(ManagerNamespace)
}

// ElectUntilReleasedIn returns the flags of [Cluster.ElectUntilReleased] for a lease in the given
// namespace.
func ElectUntilReleasedIn(namespace string) []string {
	return []string{
		"--leader-elect", "--leader-elect-resource-namespace=" + namespace,
		"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=50m", "--leader-elect-retry-period=200ms",
	}
}

// ExpireLease makes the lease of a killed or suspended leader expire within a second.
func (c *Cluster) ExpireLease(t testing.TB) {
	t.Helper()
	c.ExpireLeaseIn(t, ManagerNamespace)
}

// ExpireLeaseIn is [Cluster.ExpireLease] for a lease in the given namespace.
func (c *Cluster) ExpireLeaseIn(t testing.TB, namespace string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"leaseDurationSeconds":1}}`))
	if err := c.Patch(context.WithoutCancel(t.Context()), managersLease(namespace), patch); err != nil {
		t.Fatal(err)
	}
}

func managersLease(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tidekeeper"}}
}
