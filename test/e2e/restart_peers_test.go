// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// The tests below reproduce bugs that users of similar tools have reported, with the same steps.
// test/fault/reliability.md has the complete list.

// TestPeersGitOpsDropsWhatKubectlWrote checks that Flux does not undo a restart. Flux takes over
// fields from field managers named kubectl, so it reverts a restart by kubectl (fluxcd/flux2#2526),
// which replaces the pods once more. The pod template in this test has no annotations at all; some
// tools cannot restart such a workload (argoproj/argo-cd#28769).
func TestPeersGitOpsDropsWhatKubectlWrote(t *testing.T) {
	const name, flux = "peers-flux", "kustomize-controller"
	cluster.StartManager(t)
	cluster.AddNodes(t, name, 1)
	manifest := fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: app, image: "example.com/app:1"}]}
`, name)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	t.Cleanup(func() { cluster.Delete(t, d) })
	// sync simulates the reconciliation that Flux repeats every few minutes.
	sync := func() {
		t.Helper()
		if cluster.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil {
			cluster.Change(t, d, func() {
				names := sets.New[string]()
				for _, entry := range d.ManagedFields {
					if strings.HasPrefix(entry.Manager, "kubectl") {
						names.Insert(entry.Manager)
					}
				}
				if err := csaupgrade.UpgradeManagedFields(d, names, flux); err != nil {
					t.Fatal(err)
				}
			})
		}
		if out, err := cluster.Kubectl(manifest, "apply", "--server-side", "--force-conflicts", "--field-manager="+flux, "-f", "-"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	sync()
	rolledOut(t, "Deployment", name)
	r := restartOf("Deployment", name)
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")

	// First verify with a restart by kubectl that `sync` reverts it, as Flux does.
	if out, err := cluster.Kubectl("", "rollout", "restart", "deployment/"+name); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sync()
	if at := restartedAt(t, d); at != "" {
		t.Fatalf("a restart by kubectl is not reverted: %q", at)
	}
	rolledOut(t, "Deployment", name)

	tick := request(t, r)
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	cluster.Refresh(t, d)
	generation := d.Generation
	sync()
	if err := errors.Join(diff(tick.Format(time.RFC3339), restartedAt(t, d)), diff(generation, d.Generation)); err != nil {
		t.Errorf("the restart was reverted %v", err)
	}
}

// TestPeersNothingRunsLateAfterAnEdit checks that editing or resuming a schedule does not make past
// ticks due, regardless of the schedule's last run (kubernetes/kubernetes#63371, #65457, #130838;
// vmware-tanzu/velero#6517).
func TestPeersNothingRunsLateAfterAnEdit(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "peers-edit", 1)
	d := workload(t, "Deployment", "peers-edit").(*appsv1.Deployment)
	now := time.Now().UTC()
	// The last run was two days ago, with another schedule.
	past := func(age time.Duration) tidekeeperv1.CronExpression {
		at := now.Add(-age)
		return tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()))
	}
	r := restartOf("Deployment", "peers-edit")
	r.Spec.Schedule = past(26 * time.Hour)
	cluster.Apply(t, r)
	eventuallyRestartIs(t, r, "Suspended")
	tick := request(t, r)
	eventuallyOutcome(t, r, tick, tidekeeperv1.OutcomeSucceeded, "")
	cluster.Change(t, r, func() { r.Spec.Suspend = false })
	eventuallyRestartIs(t, r, "Scheduled")
	before := r.DeepCopy()
	cluster.ChangeStatus(t, r, func() {
		r.Status.LastScheduleTime = &metav1.Time{Time: now.AddDate(0, 0, -2)}
		r.Status.LastSuccessfulTime, r.Status.LastRequestTime = r.Status.LastScheduleTime, before.Status.LastRequestTime
	})
	cluster.Refresh(t, d)
	generation, history := d.Generation, len(r.Status.History)

	for _, edit := range []struct {
		name string
		make func()
	}{
		{"to some minutes ago, which lies between its last run and now", func() { r.Spec.Schedule = past(3 * time.Minute) }},
		{"to an hour ago", func() { r.Spec.Schedule = past(time.Hour) }},
		{"of the zone", func() { r.Spec.TimeZone = "Asia/Tokyo" }},
		{"that suspends it", func() { r.Spec.Suspend = true }},
		{"that lets it run again", func() { r.Spec.Suspend, r.Spec.TimeZone, r.Spec.Schedule = false, "UTC", past(2*time.Minute) }},
		{"of nothing that is the schedule", func() { r.Spec.HistoryLimit++ }},
	} {
		cluster.Change(t, r, edit.make)
		eventuallyRestart(t, r, framework.Patience, "is decided about", func() error {
			if r.Status.ObservedGeneration != r.Generation {
				return errors.New("not yet")
			}
			return nil
		})
		if next := r.Status.NextScheduleTime; r.Spec.Suspend != (next == nil) || next != nil && !next.After(time.Now()) {
			t.Errorf("after an edit %s the next tick is %s", edit.name, next)
		}
	}
	cluster.Refresh(t, d)
	if err := errors.Join(diff(generation, d.Generation), diff(history, len(r.Status.History))); err != nil {
		t.Errorf("something was restarted or decided: %v: %+v", err, r.Status.History)
	}
}

// TestPeersLeaderChange checks that a new leader does not restart workloads unnecessarily
// (stakater/Reloader#1089), and that a tick that became due without a leader runs once (#481). A
// manager that dies during a restart must not leave a workload paused (#1016), and the rollout must
// continue without the manager.
func TestPeersLeaderChange(t *testing.T) {
	const count = 4
	cluster.AddNodes(t, "peers-leader", 1)
	elect := cluster.ElectUntilReleased(t)
	leader := cluster.StartManager(t, elect...)
	holder := eventuallyLeader(t, "")
	var deployments []*appsv1.Deployment
	var restarts []*tidekeeperv1.ScheduledRestart
	generations := map[string]int64{}
	for i := range count {
		name := fmt.Sprintf("peers-leader-%d", i)
		d := workload(t, "Deployment", name).(*appsv1.Deployment)
		r := restartOf("Deployment", name)
		r.Spec.Suspend, r.Spec.Schedule = false, "0 0 29 2 *"
		cluster.Apply(t, r)
		deployments, restarts = append(deployments, d), append(restarts, r)
	}
	for _, r := range restarts {
		eventuallyRestartIs(t, r, "Scheduled")
		eventuallyOutcome(t, r, request(t, r), tidekeeperv1.OutcomeSucceeded, "")
	}
	for _, d := range deployments {
		cluster.Refresh(t, d)
		generations[d.Name] = d.Generation
	}
	standby := cluster.StartManager(t, elect...)
	leader.Kill(t)
	cluster.ExpireLease(t)
	holder = eventuallyLeader(t, holder)
	// The new leader handles all existing objects before this new request.
	last := restarts[count-1]
	eventuallyOutcome(t, last, request(t, last), tidekeeperv1.OutcomeSucceeded, "")
	generations[last.Name]++
	check := func() {
		t.Helper()
		for _, d := range deployments {
			if cluster.Refresh(t, d); d.Generation != generations[d.Name] || d.Spec.Paused {
				t.Errorf("%s has %d unexpected writes, paused: %t", d.Name, d.Generation-generations[d.Name], d.Spec.Paused)
			}
		}
	}
	check()

	// A restart becomes due while there is no leader.
	standby.Kill(t)
	cluster.ExpireLease(t)
	first := restarts[0]
	tick := request(t, first)
	leader = cluster.StartManager(t, elect...)
	eventuallyLeader(t, holder)
	eventuallyOutcome(t, first, tick, tidekeeperv1.OutcomeSucceeded, "")
	generations[first.Name]++
	check()

	// The leader is killed just after it has sent a restart.
	second := restarts[1]
	tick = request(t, second)
	framework.Eventually(t, "the restart was sent", func() error {
		return diff(tick.Format(time.RFC3339), restartedAt(t, deployments[1]))
	})
	leader.Kill(t)
	rolledOut(t, "Deployment", deployments[1].Name)
	generations[second.Name]++
	check()
}

// TestPeersSlotOfWhatIsGone checks that the only slot is released when the ScheduledRestart that
// holds it, or its workload, is deleted (kubereboot/kured#137, #847), even while no manager is
// running.
func TestPeersSlotOfWhatIsGone(t *testing.T) {
	cluster.AddNodes(t, "peers-slot", 1)
	args := []string{"--max-concurrent-restarts=1"}
	manager := cluster.StartManager(t, args...)
	workload(t, "Deployment", "peers-slot")
	waits := restartOf("Deployment", "peers-slot")
	cluster.Apply(t, waits)
	eventuallyRestartIs(t, waits, "Suspended")
	for name, goes := range map[string]func(r *tidekeeperv1.ScheduledRestart, d *appsv1.Deployment){
		"object":   func(r *tidekeeperv1.ScheduledRestart, _ *appsv1.Deployment) { cluster.Delete(t, r) },
		"workload": func(_ *tidekeeperv1.ScheduledRestart, d *appsv1.Deployment) { cluster.Delete(t, d) },
		"while no manager runs": func(r *tidekeeperv1.ScheduledRestart, _ *appsv1.Deployment) {
			manager.Kill(t)
			cluster.Delete(t, r)
			manager = cluster.StartManager(t, args...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			holder := "peers-holds-" + strings.ReplaceAll(name, " ", "-")
			d := deployment(holder, 1, app)
			d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/behavior": "never-ready"}
			cluster.Apply(t, d)
			r := restartOf("Deployment", holder)
			r.Spec.Precondition = tidekeeperv1.PreconditionNone
			cluster.Apply(t, r)
			eventuallyRestart(t, r, framework.Patience, "is looked at", func() error {
				if r.Status.ObservedGeneration == 0 {
					return errors.New("not yet")
				}
				return nil
			})
			request(t, r)
			eventuallyRestartIs(t, r, "Restarting")
			tick := request(t, waits)
			eventuallyRestartIs(t, waits, "BudgetExhausted")
			goes(r, d)
			eventuallyOutcome(t, waits, tick, tidekeeperv1.OutcomeSucceeded, "")
		})
	}
}
