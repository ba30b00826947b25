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

// The consequences of a manager that does not run.
const (
	ThenOutdated = "this may be out of date"
	ThenWaits    = "nothing is started until one does"
	ThenRequest  = "the request waits until one does"
	ThenFreeze   = "the freeze takes effect once one does"
)

// Manager reads which manager leads, in whatever namespace it was installed.
func Manager(ctx context.Context, e *Env, c client.Client) (view.Manager, error) {
	leases := &coordinationv1.LeaseList{}
	if err := c.List(ctx, leases, client.MatchingFields{metav1.ObjectNameField: lease.Name}); err != nil {
		return view.Manager{}, err
	}
	return view.ManagerOf(leases.Items, e.Now()), nil
}

// ManagerIfAllowed reads the same. For users who may not read the lease nothing is known of the
// manager.
func ManagerIfAllowed(ctx context.Context, e *Env, c client.Client) (view.Manager, error) {
	m, err := Manager(ctx, e, c)
	if apierrors.IsForbidden(err) {
		return view.Manager{}, nil
	}
	return m, err
}

// NoteManager says on stderr that no manager runs, as far as that is known, since when, and
// the consequence for the output or the action.
func (e *Env) NoteManager(m view.Manager, unobserved view.Unobserved, then string) {
	if problem := view.Outdated(m, unobserved, e.Now()); problem != "" {
		e.Console.Note("note: " + problem + ": " + then + ": see kubectl tide check")
	}
}

// NoteOutdated says on stderr that the status of some objects may be out of date,
// because no manager leads.
func (e *Env) NoteOutdated(ctx context.Context, c client.Client, unobserved view.Unobserved) error {
	m, err := ManagerIfAllowed(ctx, e, c)
	if err == nil {
		e.NoteManager(m, unobserved, ThenOutdated)
	}
	return err
}
