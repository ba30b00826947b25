// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/kube/lease"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Consequences of a missing manager, for notes.
const (
	ThenOutdated = "this may be out of date"
	ThenWaits    = "nothing is started until one does"
	ThenRequest  = "the request waits until one does"
	ThenFreeze   = "the freeze takes effect once one does"
)

// Manager returns which manager holds the lease, in any namespace.
func Manager(ctx context.Context, e *Env, c client.Client) (view.Manager, error) {
	leases := &coordinationv1.LeaseList{}
	if err := c.List(ctx, leases, client.MatchingFields{metav1.ObjectNameField: lease.Name}); err != nil {
		return view.Manager{}, err
	}
	return view.ManagerOf(leases.Items, e.Now()), nil
}

// ManagerIfAllowed is [Manager] for users who may lack the right to read the lease: for them, the manager is
// unknown.
func ManagerIfAllowed(ctx context.Context, e *Env, c client.Client) (view.Manager, error) {
	m, err := Manager(ctx, e, c)
	if apierrors.IsForbidden(err) {
		return view.Manager{}, nil
	}
	return m, err
}

// NoteManager prints a note to stderr if no manager is known to run, with the time since when, and the
// consequence for the output or the action.
func (e *Env) NoteManager(m view.Manager, unobserved view.Unobserved, then string) {
	if problem := view.Outdated(m, unobserved, e.Now()); problem != "" {
		e.Console.Note("note: " + problem + ": " + then + ": see kubectl tide check")
	}
}

// NoteOutdated prints a note to stderr if the status of some objects may be out of date because no manager
// holds the lease.
func (e *Env) NoteOutdated(ctx context.Context, c client.Client, unobserved view.Unobserved) error {
	m, err := ManagerIfAllowed(ctx, e, c)
	if err == nil {
		e.NoteManager(m, unobserved, ThenOutdated)
	}
	return err
}
