// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestSettingsOfAnOlderManager checks a downgrade of the manager. The lease keeps the labels with
// the newer manager's settings, because the older manager, like any client of client-go, writes
// only the lease's spec. The plugin must then assume the default settings instead of the labels'
// values.
func TestSettingsOfAnOlderManager(t *testing.T) {
	const (
		one     = `Budget +open +other restarts use 0 of 1 slots, and 0 of the 1 that this namespace may have\n`
		assumed = `Budget +open +other restarts use 0 of 20 slots, and 0 of the 10 that this namespace may have \(assumed: --max-concurrent-restarts 20, --restart-namespace-share 50\)\n`
	)
	elected := append(cluster.ElectUntilReleased(t), oneSlot...)
	cluster.AddNodes(t, "downgrade", 1)
	m := cluster.StartManager(t, elected...)
	w := aTruthWorld(t, "downgrade", time.Now().Add(12*time.Hour), 3600, nil, nil)
	w.says(t, "gates web", 0, one)
	m.Stop(t)
	w.says(t, "gates web", 2, `Manager +closed +NoLeader`, assumed)

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: "tidekeeper"}}
	cluster.Refresh(t, lease)
	holds := func(identity string) {
		now := metav1.NowMicro()
		cluster.Change(t, lease, func() {
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &identity, new(int32(3600))
			lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
		})
	}
	holds("older_5f0c8e0a-5a4b-4a65-8f7a-2f2f1f0c9a11")
	if lease.Labels["settings.tidekeeper.dev/max-concurrent-restarts"] != "1" {
		t.Fatalf("the lease has the labels %v", lease.Labels)
	}
	w.says(t, "gates web", 0, assumed)
	w.says(t, "forecast", 0, `Assumed: .*--max-concurrent-restarts`)

	cluster.StartManager(t, elected...)
	cluster.ExpireLease(t)
	framework.Eventually(t, "the newer manager leads again, and its settings are known", func() error {
		r := command{args: []string{"restarts", "gates", "web", "-n", w.namespace}}.run(t)
		if !regexp.MustCompile(one).MatchString(r.stdout) {
			return fmt.Errorf("%s%s", r.stdout, r.stderr)
		}
		return nil
	})
}

// TestSettingsAreThoseOfTheLeader checks that the plugin takes the settings of the restart budget
// from the current leader, not from a standby or a former leader. If the settings are invalid, or
// if the user may not read them, the plugin must assume the defaults and report that.
func TestSettingsAreThoseOfTheLeader(t *testing.T) {
	elect := cluster.ElectUntilReleased(t)
	const (
		ofFirst  = "of 6 slots, and 0 of the 3 that this namespace may have\n"
		ofSecond = "of 8 slots, and 0 of the 2 that this namespace may have\n"
		assumed  = " (assumed: --max-concurrent-restarts 20, --restart-namespace-share 50)\n"
	)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: "tidekeeper"}}
	cluster.AddNodes(t, "settings", 1)
	first := cluster.StartManager(t, append(elect, "--max-concurrent-restarts=6", "--restart-slot-age=7m")...)
	w := aTruthWorld(t, "settings", time.Now().Add(12*time.Hour), 3600, nil, nil)
	ask := func(kubeconfig string) (said string, code int) {
		t.Helper()
		r := command{kubeconfig: kubeconfig, args: []string{"restarts", "gates", "web", "-n", w.namespace}}.run(t)
		return r.stdout + r.stderr, r.code
	}
	gates := func(kubeconfig string) string {
		t.Helper()
		said, code := ask(kubeconfig)
		if code != 0 {
			t.Errorf("gates: exit code %d\n%s", code, said)
		}
		return said
	}
	eventuallySays := func(what, kubeconfig, want string) {
		t.Helper()
		framework.Eventually(t, what, func() error {
			if said := gates(kubeconfig); !strings.Contains(said, want) {
				return fmt.Errorf("it says:\n%s", said)
			}
			return nil
		})
	}
	eventuallySays("the settings are those of the leader", cluster.Kubeconfig, ofFirst)
	cluster.Refresh(t, lease)
	leader := *lease.Spec.HolderIdentity
	cluster.StartManager(t, append(elect, "--max-concurrent-restarts=8", "--restart-namespace-share=25", "--restart-slot-age=9m")...)
	if said := gates(cluster.Kubeconfig); !strings.Contains(said, ofFirst) {
		t.Errorf("beside a standby it says:\n%s", said)
	}

	first.Kill(t)
	cluster.ExpireLease(t)
	framework.Eventually(t, "the settings are those of the next leader", func() error {
		cluster.Refresh(t, lease)
		// Between the end of the lease and the next leader, the plugin says that no manager leads.
		said, code := ask(cluster.Kubeconfig)
		if *lease.Spec.HolderIdentity != leader && strings.Contains(said, ofFirst) {
			t.Errorf("%s leads, and the plugin takes the settings of %s:\n%s", *lease.Spec.HolderIdentity, leader, said)
		}
		if code != 0 || !strings.Contains(said, ofSecond) {
			return fmt.Errorf("exit code %d:\n%s", code, said)
		}
		return nil
	})
	if said := w.says(t, "forecast", 0); strings.Contains(said, "--max-concurrent-restarts") || strings.Contains(said, "--restart-slot-age") {
		t.Errorf("the forecast assumes what the manager has published:\n%s", said)
	}

	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "settings-reader", Namespace: w.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "settings-reader"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
	reader := cluster.UserKubeconfig(t, "settings-reader")
	framework.Eventually(t, "the reader may read ScheduledRestarts", func() error {
		out, err := cluster.Kubectl("", "auth", "can-i", "list", "scheduledrestarts", "-n", w.namespace, "--as=settings-reader")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	eventuallySays("a user who may not read the lease reads what is assumed", reader, assumed)

	for _, nonsense := range []string{"lots", "0", "99999999999999999999"} {
		cluster.Refresh(t, lease)
		cluster.Change(t, lease, func() { lease.Labels["settings.tidekeeper.dev/max-concurrent-restarts"] = nonsense })
		if said := gates(cluster.Kubeconfig); strings.Contains(said, "of "+nonsense+" slots") {
			t.Errorf("the plugin believes %q:\n%s", nonsense, said)
		}
	}
}
