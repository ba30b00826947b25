// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/kube/lease"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// Consequences of a missing manager, as phrases for a note that no manager is running.
const (
	ThenOutdated = "this may be out of date"
	ThenWaits    = "nothing is started until one does"
	ThenRequest  = "the request waits until one does"
	ThenFreeze   = "the freeze takes effect once one does"
)

// Manager returns the state of Tidekeeper's manager, according to its leader election leases in all
// namespaces.
func Manager(ctx context.Context, e *Env, c client.Client) (view.Manager, error) {
	leases := &coordinationv1.LeaseList{}
	if err := c.List(ctx, leases, client.MatchingFields{metav1.ObjectNameField: lease.Name}); err != nil {
		return view.Manager{}, err
	}
	return view.ManagerOf(leases.Items, e.Now()), nil
}

// ManagerIfAllowed is like [Manager], but returns the zero value (an unknown state) if the user is
// not allowed to list leases.
func ManagerIfAllowed(ctx context.Context, e *Env, c client.Client) (view.Manager, error) {
	m, err := Manager(ctx, e, c)
	if apierrors.IsForbidden(err) {
		return view.Manager{}, nil
	}
	return m, err
}

// NoteManager prints a note to stderr if there is evidence that no manager is running. The note
// states the evidence, and the consequence `then`.
func (e *Env) NoteManager(m view.Manager, unobserved view.Unobserved, then string) {
	if problem := view.Outdated(m, unobserved, e.Now()); problem != "" {
		e.Console.Note("note: " + problem + ": " + then + ": see kubectl tide check")
	}
}

// NoteController prints a note to stderr if the leader does not run the named controller. `then` is
// the consequence to state.
func (e *Env) NoteController(m view.Manager, controller, then string) {
	if m.NotRunning(controller) {
		e.Console.Note("note: " + NotRunning(controller) + ": " + then)
	}
}

// NotRunning returns a message that the leader does not run the named controller. The message
// explains how to enable the controller.
func NotRunning(controller string) string {
	return fmt.Sprintf("the controller %[1]s does not run (add it to --controllers of the manager, such as --controllers=*,%[1]s)", controller)
}

// NoteOutdated prints a note to stderr if the status of some objects may be outdated because no
// manager is running.
func (e *Env) NoteOutdated(ctx context.Context, c client.Client, unobserved view.Unobserved) error {
	m, err := ManagerIfAllowed(ctx, e, c)
	if err == nil {
		e.NoteManager(m, unobserved, ThenOutdated)
	}
	return err
}
