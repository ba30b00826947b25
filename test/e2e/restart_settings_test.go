// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// plugin runs kubectl tide with a kubeconfig, and returns what it prints. Whether it has found
// something is in its exit code, which may be 0 or 2.
func plugin(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	path, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, args...)
	command.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir(), "TZ=UTC"}
	said, err := command.CombinedOutput()
	if code := command.ProcessState.ExitCode(); code != 0 && code != 2 {
		t.Errorf("%q: %v: %s", args, err, said)
	}
	return string(said)
}

// The plugin takes the settings of the restart budget from the manager that leads: not those of a
// standby, nor those of a leader that is gone. What is no setting, and what its user may not read, it
// assumes, and says so.
func TestSettingsAreThoseOfTheLeader(t *testing.T) {
	elect := cluster.ElectUntilReleased(t)
	const (
		ofFirst  = "of 6 slots, and 0 of the 3 that this namespace may have\n"
		ofSecond = "of 8 slots, and 0 of the 2 that this namespace may have\n"
		assumed  = " (assumed: --max-concurrent-restarts 20, --restart-namespace-share 50)\n"
	)
	first := cluster.StartManager(t, append(elect, "--max-concurrent-restarts=6", "--restart-slot-age=7m")...)
	leader := eventuallyLeader(t, "")
	cluster.StartManager(t, append(elect, "--max-concurrent-restarts=8", "--restart-namespace-share=25", "--restart-slot-age=9m")...)
	cluster.AddNodes(t, "settings", 1)
	workload(t, "Deployment", "settings")
	suspendedRestart(t, "settings")
	gates := func(kubeconfig string) string {
		t.Helper()
		return plugin(t, kubeconfig, "restarts", "gates", "settings", "-n", "default")
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

	first.Kill(t)
	cluster.ExpireLease(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: "tidekeeper"}}
	framework.Eventually(t, "the settings are those of the next leader", func() error {
		cluster.Refresh(t, lease)
		said := gates(cluster.Kubeconfig)
		if *lease.Spec.HolderIdentity != leader && strings.Contains(said, ofFirst) {
			t.Errorf("%s leads, and the plugin takes the settings of %s:\n%s", *lease.Spec.HolderIdentity, leader, said)
		}
		if !strings.Contains(said, ofSecond) {
			return fmt.Errorf("it says:\n%s", said)
		}
		return nil
	})
	if said := plugin(t, cluster.Kubeconfig, "restarts", "forecast", "-n", "default"); strings.Contains(said, "--max-concurrent-restarts") || strings.Contains(said, "--restart-slot-age") {
		t.Errorf("the forecast assumes what the manager has published:\n%s", said)
	}

	for _, o := range bindRole("settings-reader", "view") {
		cluster.Apply(t, o)
	}
	reader := cluster.UserKubeconfig(t, "settings-reader")
	framework.Eventually(t, "the reader may read ScheduledRestarts", func() error {
		out, err := cluster.Kubectl("", "auth", "can-i", "list", "scheduledrestarts", "-n", "default", "--as=settings-reader")
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
