// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease reads the lease of the leader election: which manager leads, or the reason why
// none does.
package lease

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Name is the name of the Lease with which managers elect their leader.
const Name = "tidekeeper"

// Leader returns the manager that holds the lease and has renewed it in time, or an error with
// the reason why there is none.
func Leader(l *coordinationv1.Lease, now time.Time) (string, error) {
	spec := l.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return "", errors.New(withoutHolder(l, now))
	}
	// The clocks of two machines may differ by less than this; an abandoned lease is older.
	if age := now.Sub(spec.RenewTime.Time); age > 2*time.Duration(*spec.LeaseDurationSeconds)*time.Second {
		return "", fmt.Errorf("%s, which holds the lease %s, has not renewed it for %s", *spec.HolderIdentity, l.Name, age.Round(time.Second))
	}
	return *spec.HolderIdentity, nil
}

// withoutHolder returns the message for a lease without a holder, with the time of its release,
// which a manager writes when it stops in order.
func withoutHolder(l *coordinationv1.Lease, now time.Time) string {
	if released := l.Spec.RenewTime; released != nil && now.Sub(released.Time) >= time.Second {
		return fmt.Sprintf("the lease %s has had no holder for %s", l.Name, now.Sub(released.Time).Round(time.Second))
	}
	return fmt.Sprintf("the lease %s has no holder", l.Name)
}
