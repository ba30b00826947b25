// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease reads the leader election Lease to find the leading manager, or the reason why
// there is none.
package lease

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Name is the name of the Lease that managers use for leader election.
const Name = "tidekeeper"

// Leader returns the identity of the manager that holds the lease and has renewed it in time. If
// there is no such manager, the error contains the reason.
func Leader(l *coordinationv1.Lease, now time.Time) (string, error) {
	spec := l.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return "", errors.New(withoutHolder(l, now))
	}
	// The lease counts as expired only after twice its duration, to allow for clock skew between
	// machines.
	if age := now.Sub(spec.RenewTime.Time); age > 2*time.Duration(*spec.LeaseDurationSeconds)*time.Second {
		return "", fmt.Errorf("%s, which holds the lease %s, has not renewed it for %s", *spec.HolderIdentity, l.Name, age.Round(time.Second))
	}
	return *spec.HolderIdentity, nil
}

// withoutHolder returns the message for a lease without a holder. A manager that shuts down cleanly
// releases the lease, so the renew time of the lease is then the time of its release.
func withoutHolder(l *coordinationv1.Lease, now time.Time) string {
	if released := l.Spec.RenewTime; released != nil && now.Sub(released.Time) >= time.Second {
		return fmt.Sprintf("the lease %s has had no holder for %s", l.Name, now.Sub(released.Time).Round(time.Second))
	}
	return fmt.Sprintf("the lease %s has no holder", l.Name)
}
