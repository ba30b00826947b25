// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// ofNamespace is a client of a user who may list ScheduledRestarts in one namespace only, which has
// one that is observed.
type ofNamespace struct {
	client.Client
	namespace string
}

// List implements client.Reader.
func (c ofNamespace) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if o.Namespace != c.namespace {
		return apierrors.NewForbidden(schema.GroupResource{Group: "tidekeeper.dev", Resource: "scheduledrestarts"}, "", nil)
	}
	if restarts, ok := list.(*tidekeeperv1.ScheduledRestartList); ok {
		restarts.Items = make([]tidekeeperv1.ScheduledRestart, 1)
	}
	return nil
}

// TestObservedInTheOwnNamespace checks that a user of one namespace gets the result of the
// ScheduledRestarts there, and the note that the others are unknown.
func TestObservedInTheOwnNamespace(t *testing.T) {
	o := &options{Env: &cmdutil.Env{Now: time.Now}, namespace: "shop"}
	for namespace, want := range map[string]result{
		"shop":  {"scheduledrestarts", ok, "the manager has observed 1 of 1 in the namespace shop; you may not list the others"},
		"other": {"scheduledrestarts", unknown, `scheduledrestarts.tidekeeper.dev is forbidden: <nil>`},
	} {
		got, err := o.observed(t.Context(), ofNamespace{namespace: namespace}, &view.Unobserved{}, "ScheduledRestart", func() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} })
		if err != nil || got != want {
			t.Errorf("with rights in %s: %+v, %v, want %+v", namespace, got, err, want)
		}
	}
}
