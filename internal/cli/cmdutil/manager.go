// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/lease"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Manager reads which manager leads, in whatever namespace it was installed.
func Manager(ctx context.Context, e *Env, c client.Client) (view.Manager, error) {
	leases := &coordinationv1.LeaseList{}
	if err := c.List(ctx, leases, client.MatchingFields{metav1.ObjectNameField: lease.Name}); err != nil {
		return view.Manager{}, err
	}
	return view.ManagerOf(leases.Items, e.Now()), nil
}

// NoteNoLeader says on stderr that what was requested waits, if a manager has led and none
// leads now. For users who may not read the lease it says nothing.
func (e *Env) NoteNoLeader(ctx context.Context, c client.Client) error {
	m, err := Manager(ctx, e, c)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err == nil && m.Leader == "" && m.Namespace != "" {
		e.Note("warning: no manager leads: " + m.Problem + " (namespace " + m.Namespace + "); it starts when one does: see kubectl tide check")
	}
	return err
}

// NoteOutdated says on stderr if what is shown of some objects may be out of date,
// because no manager leads. For users who may not read the lease it says nothing.
func (e *Env) NoteOutdated(ctx context.Context, c client.Client, unobserved view.Unobserved) error {
	m, err := Manager(ctx, e, c)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if problem := view.Outdated(m, unobserved, e.Now()); problem != "" {
		e.Note("note: this may be out of date: " + problem + ": see kubectl tide check")
	}
	return nil
}
