// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// upgraded is the number of Deployments that are restarted during an upgrade. Every second
// Deployment has slow pods, and every third one is restarted only in a window. upgradedNodes is the
// number of nodes of the pool that is changed meanwhile.
const (
	upgraded      = 12
	upgradedNodes = 10
)

// upgrade is a cluster whose Tidekeeper is upgraded.
type upgrade struct {
	*framework.Cluster
	clock       framework.Clock
	deployments []*appsv1.Deployment
	restarts    []*tidekeeperv1.ScheduledRestart
	pool        *tidekeeperv1.NodePool
}

// TestUpgradeAndBack upgrades from the chart and the manager of the latest version in test/compat
// to those of this tree, and downgrades again. Each time restarts are due, windows are open, a pool
// is being changed, and the manager is killed in the middle. Nothing may be restarted twice, lost
// or undone. OLDER names the folder with the older version, which make build-older builds.
func TestUpgradeAndBack(t *testing.T) {
	t.Parallel()
	dir := cmp.Or(os.Getenv("OLDER"), filepath.Join(framework.Root(), "bin", "older"))
	commit, err := os.ReadFile(filepath.Join(dir, "commit"))
	if err != nil {
		t.Fatalf("there is no older version: run make build-older: %v", err)
	}
	t.Logf("the older version is that of commit %s", commit)
	u := &upgrade{
		Cluster: framework.StartEmpty(t, fmt.Sprintf("--nodes=%d", upgradedNodes)).WithClocks(t),
		clock:   framework.NewStandingClock(t, hour.Add(-10*time.Minute)),
	}
	older := u.WithManager(filepath.Join(dir, "tidekeeper-clock"))

	u.helm(t, "install", "tidekeeper", filepath.Join(dir, "chart"), "--create-namespace", "--set=image.tag=older")
	u.BecomeManager(t)
	u.populate(t)
	manager := older.StartManager(t, u.clock.Flag())
	u.resume(t)
	u.eventuallyLabelled(t, "first")
	u.interrupt(t, manager, hour, "second")

	u.helm(t, "upgrade", "tidekeeper", framework.Chart(), "--reset-then-reuse-values", "--set=image.tag=newer")
	manager = u.StartManager(t, u.clock.Flag())
	u.eventuallyDone(t, hour)
	u.eventuallyLabelled(t, "second")
	u.interrupt(t, manager, hour.Add(time.Hour), "third")

	u.helm(t, "rollback", "tidekeeper")
	older.StartManager(t, u.clock.Flag())
	u.eventuallyDone(t, hour, hour.Add(time.Hour))
	u.eventuallyLabelled(t, "third")
}

// helm runs a helm command of docs/tasks/upgrade.md. The Deployment's pods on simulated nodes run
// nothing.
func (u *upgrade) helm(t *testing.T, args ...string) {
	t.Helper()
	args = append(args, "--namespace", framework.ManagerNamespace, "--wait", "--kubeconfig", u.Kubeconfig)
	if out, err := framework.Helm(t, args...); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// populate creates the pool, and the Deployments with their suspended ScheduledRestarts.
func (u *upgrade) populate(t *testing.T) {
	t.Helper()
	u.pool = framework.Pool("upgrade")
	u.pool.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{"kubernetes.io/os": "linux"}}
	u.pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/upgrade": "first"}
	u.Apply(t, u.pool)
	for i := range upgraded {
		d, r := framework.Deployment(fmt.Sprintf("upgrade-%d", i), 2, framework.App), framework.ScheduledRestart(fmt.Sprintf("upgrade-%d", i))
		r.Spec = tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: d.Name}, Schedule: "0 * * * *", Suspend: true,
			StartingDeadlineSeconds: 60, ProgressDeadlineSeconds: 24 * 60 * 60,
		}
		if i%2 == 0 {
			d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/containers-ready-after": "3s"}
		}
		if i%3 == 0 {
			r.Spec.Windows = []tidekeeperv1.RestartWindow{{Schedule: "30 * * * *", DurationSeconds: 2 * 60 * 60}}
		}
		u.Apply(t, d)
		u.Apply(t, r)
		u.deployments, u.restarts = append(u.deployments, d), append(u.restarts, r)
	}
}

// resume resumes all ScheduledRestarts. Their ticks begin at the current time of the manager's
// clock.
func (u *upgrade) resume(t *testing.T) {
	t.Helper()
	for _, reason := range []string{tidekeeperv1.ReasonSuspended, tidekeeperv1.ReasonScheduled} {
		framework.Eventually(t, "all are "+reason, func() error {
			for _, r := range u.restarts {
				u.Refresh(t, r)
				if err := framework.ReadyIs(r.Status.Conditions, r.Generation, reason); err != nil {
					return fmt.Errorf("%s: %w", r.Name, err)
				}
			}
			return nil
		})
		for _, r := range u.restarts {
			u.Change(t, r, func() { r.Spec.Suspend = false })
		}
	}
}

// interrupt advances the clock to a tick, changes the pool once restarts have started, and kills
// the manager.
func (u *upgrade) interrupt(t *testing.T, manager *framework.Manager, tick time.Time, label string) {
	t.Helper()
	u.clock.Set(t, tick)
	framework.Eventually(t, "a restart has started", func() error {
		for _, d := range u.deployments {
			if slices.Contains(u.RestartedAt(t, d), tick.UTC().Format(time.RFC3339)) {
				return nil
			}
		}
		return errors.New("no Deployment has a template of this tick")
	})
	u.Change(t, u.pool, func() { u.pool.Spec.Labels["example.com/upgrade"] = tidekeeperv1.LabelValue(label) })
	manager.Kill(t)
}

// eventuallyDone waits until each given tick, and no other tick, has restarted its workload once
// and succeeded.
func (u *upgrade) eventuallyDone(t *testing.T, ticks ...time.Time) {
	t.Helper()
	var templates, records []string
	for _, tick := range ticks {
		templates = append(templates, tick.UTC().Format(time.RFC3339))
		records = append([]string{succeeded(tick)}, records...)
	}
	for i, r := range u.restarts {
		framework.Eventually(t, r.Name+" has restarted for each tick", func() error {
			u.Refresh(t, r)
			var got []string
			for _, record := range r.Status.History {
				got = append(got, outcomeOf(record.ScheduledTime.Time, record.Outcome, record.Reason, record.EarlierTicks))
			}
			if diff := gocmp.Diff(records, got); diff != "" || r.Status.Active != nil {
				return fmt.Errorf("active: %v, history (-want +got):\n%s", r.Status.Active, diff)
			}
			return nil
		})
		if got := u.RestartedAt(t, u.deployments[i]); !slices.Equal(got, templates) {
			t.Errorf("%s was restarted at %q, want %q", r.Name, got, templates)
		}
	}
}

// eventuallyLabelled waits until the nodes have the pool's label with the given value.
func (u *upgrade) eventuallyLabelled(t *testing.T, want string) {
	t.Helper()
	framework.Eventually(t, "all nodes have the label "+want, func() error {
		nodes := &corev1.NodeList{}
		if err := u.List(t.Context(), nodes, client.MatchingLabels{"example.com/upgrade": want}); err != nil {
			return err
		}
		if len(nodes.Items) != upgradedNodes {
			return fmt.Errorf("%d nodes have it, want %d", len(nodes.Items), upgradedNodes)
		}
		return nil
	})
}
