// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// suspendedOptIn creates a workload of the neighbour whose opt-in was suspended by hand, and a user
// who may write ScheduledRestarts but not Deployments in the neighbour's namespace.
func (s *stage) suspendedOptIn(t *testing.T, name string) (*appsv1.Deployment, *tidekeeperv1.ScheduledRestart, client.Client) {
	t.Helper()
	d := workload(quiet, name, 0, nil).(*appsv1.Deployment)
	d.Annotations = map[string]string{tidekeeperv1.OptInAnnotation: "true", tidekeeperv1.OptInScheduleAnnotation: "* * * * *"}
	cluster.Apply(t, d)
	r := restart(quiet, name, nil)
	framework.Eventually(t, "it has opted in", func() error { return cluster.Get(t.Context(), client.ObjectKeyFromObject(r), r) })
	cluster.Change(t, r, func() { r.Spec.Suspend = true })
	user := "alice-" + name
	grant(t, quiet, user, "tidekeeper-scheduledrestart-edit")
	alice := as(t, user)
	framework.Eventually(t, "she may write ScheduledRestarts", func() error {
		return alice.Patch(t.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
	})
	cluster.Refresh(t, r)
	return d, r, alice
}

// staysSuspended checks that the user's request was rejected or had no effect: the ScheduledRestart
// was created again, and is suspended as before.
func staysSuspended(t *testing.T, err error, d *appsv1.Deployment, r *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		t.Logf("refused: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	before := r.UID
	framework.Eventually(t, "it is created again", func() error {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if r.UID == before {
			return fmt.Errorf("it is still the previous one, owned by %+v", r.OwnerReferences)
		}
		return nil
	})
	if !r.Spec.Suspend {
		t.Errorf("a user who may not patch %s has resumed its schedule", d.Name)
	}
}

func (s *stage) deletedOptIn(t *testing.T) {
	d, r, alice := s.suspendedOptIn(t, "night")
	staysSuspended(t, alice.Delete(t.Context(), r), d, r)
}

func (s *stage) disownedOptIn(t *testing.T) {
	d, r, alice := s.suspendedOptIn(t, "dawn")
	latest := r.DeepCopy()
	latest.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: "00000000-0000-0000-0000-000000000000", Controller: new(true),
	}}
	staysSuspended(t, alice.Patch(t.Context(), latest, client.MergeFrom(r)), d, r)
}
