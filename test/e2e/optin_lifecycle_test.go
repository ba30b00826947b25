// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestOptIn_CreatedAndWaiting checks that the status of a newly created ScheduledRestart reports
// that it is suspended.
func TestOptIn_CreatedAndWaiting(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		cluster.Apply(t, optInWorkload(kind, name, optInKey, "true"))
		framework.Eventually(t, name+" is suspended and ready", func() error {
			restart := restartNamed(t, name)
			if restart == nil {
				return errors.New("it does not exist yet")
			}
			ready := meta.FindStatusCondition(restart.Status.Conditions, "Ready")
			if ready == nil {
				return errors.New("no condition Ready yet")
			}
			return diff("True Suspended: the schedule is suspended; to resume it, set spec.suspend to false", string(ready.Status)+" "+ready.Reason+": "+ready.Message)
		})
	})
}

// TestOptIn_FailedCreationSaysSo checks that the failure to create a ScheduledRestart is reported,
// and that the creation is retried.
func TestOptIn_FailedCreationSaysSo(t *testing.T) {
	cluster.StartManager(t)
	const policy = "s43"
	if _, err := cluster.Kubectl(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: s43}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [tidekeeper.dev], apiVersions: [v1], operations: [CREATE], resources: [scheduledrestarts]}]
  validations: [{expression: "!object.metadata.name.startsWith('s43-')", message: "not tonight", reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: s43}
spec: {policyName: s43, validationActions: [Deny]}
`, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	lift := func() {
		if _, err := cluster.Kubectl("", "delete", "--ignore-not-found", "validatingadmissionpolicy,validatingadmissionpolicybinding", policy); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(lift)
	probe := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: "s43-probe", Namespace: metav1.NamespaceDefault},
		Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "x"}},
	}
	framework.Eventually(t, "the policy is in force", func() error {
		if err := cluster.Create(t.Context(), probe.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("creation answers: %w", err)
		}
		return nil
	})
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	for _, kind := range kinds {
		name := "s43-" + strings.ToLower(kind)
		cluster.Apply(t, optInWorkload(kind, name, optInKey, "true"))
		framework.Eventually(t, "an event says what failed, and why", func() error {
			events := cluster.Events(t, kind, name)
			if !slices.ContainsFunc(events, func(e string) bool {
				return strings.HasPrefix(e, "Warning ScheduledRestartFailed: create ScheduledRestart "+name+": ") && strings.Contains(e, "not tonight")
			}) {
				return fmt.Errorf("got %q", events)
			}
			return nil
		})
	}
	lift()
	for _, kind := range kinds {
		eventuallyOptIn(t, "s43-"+strings.ToLower(kind), wanted{Suspend: true})
	}
}

// TestOptIn_DeletedWithTheWorkload checks that deleting a workload deletes the ScheduledRestart of
// its opt-in, and nothing else.
func TestOptIn_DeletedWithTheWorkload(t *testing.T) {
	manager := cluster.StartManager(t)
	own := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: "s46-own", Namespace: metav1.NamespaceDefault},
		Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "s46-deployment"}, Suspend: true},
	}
	cluster.Apply(t, own)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 3 * * *")
		cluster.Apply(t, w)
		restart := eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *"})
		cluster.Delete(t, w)
		eventuallyGone(t, restart)

		// The workload is recreated, and then deleted in the foreground.
		w = optInWorkload(kind, name, optInKey, "true")
		cluster.Apply(t, w)
		restart = eventuallyOptIn(t, name, wanted{Suspend: true})
		if err := cluster.Client.Delete(t.Context(), w, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
		eventuallyGone(t, w)
		eventuallyGone(t, restart)
	})
	cluster.Refresh(t, own)

	// The deletion also works while no manager is running.
	w := optInWorkload("Deployment", "s46-alone", optInKey, "true")
	cluster.Apply(t, w)
	restart := eventuallyOptIn(t, "s46-alone", wanted{Suspend: true})
	manager.Stop(t)
	cluster.Delete(t, w)
	eventuallyGone(t, restart)
}

// orphan deletes a workload that has opted in and orphans its dependents. It first waits until the
// garbage collector knows the dependents, because the collector would delete them otherwise.
func orphan(t *testing.T, w client.Object) {
	t.Helper()
	collectorKnows(t, w.GetName()+"-known")
	if err := cluster.Client.Delete(t.Context(), w, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, w)
}

// collectorKnows waits until the garbage collector knows all existing ScheduledRestarts. It does so
// by waiting until the collector has deleted a newer ScheduledRestart, whose workload has the given
// name.
func collectorKnows(t *testing.T, name string) {
	t.Helper()
	collected := optInWorkload("Deployment", name, optInKey, "true")
	cluster.Apply(t, collected)
	later := eventuallyOptIn(t, name, wanted{Suspend: true})
	cluster.Delete(t, collected)
	eventuallyGone(t, later)
}

// TestOptIn_OrphanIsTakenOver checks that a workload that is deleted with its dependents orphaned,
// and then recreated, adopts its ScheduledRestart, as it adopts its pods.
func TestOptIn_OrphanIsTakenOver(t *testing.T) {
	cluster.StartManager(t)
	forEachKind(t, func(t *testing.T, kind, name string) {
		w := optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 3 * * *")
		cluster.Apply(t, w)
		before := eventuallyOptIn(t, name, wanted{Schedule: "0 3 * * *"})
		cluster.Change(t, before, func() { before.Spec.Suspend = true })
		orphan(t, w)
		w = optInWorkload(kind, name, optInKey, "true", scheduleKey, "0 4 * * *")
		cluster.Apply(t, w)
		after := eventuallyOptIn(t, name, wanted{Schedule: "0 4 * * *", Suspend: true})
		if after.UID != before.UID || !metav1.IsControlledBy(after, w) {
			t.Errorf("it was not adopted: %+v", after.ObjectMeta)
		}
	})
}

// TestOptIn_OrphanRestartsNothing checks that a deleted workload's orphaned ScheduledRestart does
// not restart a new workload with the same name, until the new workload opts in or a user takes
// over the ScheduledRestart.
func TestOptIn_OrphanRestartsNothing(t *testing.T) {
	cluster.StartManager(t)
	const name = "s46-orphan"
	cluster.AddNodes(t, name, 1)
	optedIn := workload(t, "Deployment", name)
	// No tick is due while the test runs.
	schedule := fmt.Sprintf("17 %d * * *", time.Now().Add(12*time.Hour).UTC().Hour())
	annotate(t, optedIn, scheduleKey, schedule)
	annotate(t, optedIn, optInKey, "true")
	r := eventuallyOptIn(t, name, wanted{Schedule: schedule})
	eventuallyRestart(t, r, framework.Patience, "has a next tick", func() error {
		if r.Status.NextScheduleTime == nil {
			return fmt.Errorf("status %+v", r.Status)
		}
		return nil
	})
	orphan(t, optedIn)
	w := workload(t, "Deployment", name)
	eventuallyRestart(t, r, framework.Patience, "is stopped", func() error {
		if next := r.Status.NextScheduleTime; next != nil {
			return fmt.Errorf("its next tick is at %s", next)
		}
		return framework.ReadyIs(r.Status.Conditions, r.Generation, "Orphaned")
	})
	if r.Status.Active != nil {
		t.Errorf("a restart is in progress: %+v", r.Status.Active)
	}
	if at := restartedAt(t, w); at != "" {
		t.Errorf("it was restarted for %s", at)
	}

	cluster.Change(t, r, func() { delete(r.Annotations, tidekeeperv1.AppliedAnnotation) })
	eventuallyRestart(t, r, framework.Patience, "is a user's own", func() error {
		if r.Status.NextScheduleTime == nil {
			return fmt.Errorf("it has no next tick: %+v", r.Status)
		}
		return nil
	})
	cluster.Delete(t, r)
}
