// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// blackBox runs tests of test/e2e against the installation. With FULL it runs all of them, and the
// managers' requests are then compared with the managers' rights.
func (i *installation) blackBox(t *testing.T) {
	i.helm(t, helmArgs("upgrade", framework.Chart(), "replicas=0", "controllers={*,pod-count}", "cleanup.timeoutSeconds=40")...)
	args := []string{"-test.timeout=30m"}
	if os.Getenv("FULL") == "" {
		args = append(args, "-test.run=^("+strings.Join(chosen, "|")+")$")
	}
	command := exec.CommandContext(t.Context(), mustBinary(t, "E2E_BIN", "e2e.test"), args...)
	command.Dir = filepath.Join(framework.Root(), "test", "e2e")
	command.Env = append(os.Environ(), "TIDEKEEPER_SANDBOX="+i.Dir, "TIDEKEEPER_RACE_BIN=", "PROXY_RACE_BIN=")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	asked, err := i.ManagerRequests()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range asked {
		if q.Denied {
			t.Errorf("denied: %s", q)
		}
	}
}

// uninstallWithoutManager checks that an uninstall fails while no manager is running, because the
// pools' settings would stay on the nodes.
func (i *installation) uninstallWithoutManager(t *testing.T) {
	i.start()
	i.applyPool(t)
	i.manager.Kill(t)
	said, err := helmWithPod(t, i.Cluster, "tidekeeper-cleanup", "uninstall", release, "--namespace", namespace, "--kubeconfig", i.Kubeconfig)
	if err == nil || !strings.Contains(said, "after 40s these objects are still there: tide") {
		t.Errorf("got %v and\n%s", err, said)
	}
	i.Refresh(t, framework.Pool("tide"))
	i.Refresh(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: release, Namespace: namespace}})
	i.eventuallyLabel(t, "high")
	i.ExpireLease(t)
	i.start()
	i.deletePool(t)
}

func (i *installation) uninstall(t *testing.T) {
	i.applyPool(t)
	said, err := helmWithPod(t, i.Cluster, "tidekeeper-cleanup", "uninstall", release, "--namespace", namespace, "--kubeconfig", i.Kubeconfig, "--wait")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	i.eventuallyLabel(t, "")
	// The manager is killed at the moment at which its rights are removed, like a pod that is
	// deleted with its Deployment.
	i.manager.Kill(t)
	i.Delete(t, framework.Node("tide-1"))
}

// kustomize installs Tidekeeper with kubectl and without Helm.
func (i *installation) kustomize(t *testing.T) {
	config := filepath.Join(framework.Root(), "config", "default")
	if out, err := i.Kubectl("", "apply", "-k", config); err != nil || strings.Contains(out, "Warning") {
		t.Fatalf("%v\n%s", err, out)
	}
	framework.Eventually(t, "two pods are admitted", func() error {
		pods := &corev1.PodList{}
		err := i.List(t.Context(), pods, client.InNamespace(namespace))
		if err == nil && len(pods.Items) != 2 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
}

func (i *installation) deleteKustomize(t *testing.T) {
	if out, err := i.Kubectl("", "delete", "--ignore-not-found", "-k", filepath.Join(framework.Root(), "config", "default")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// takeOver lets Helm adopt the objects that kubectl has installed. Pools and schedules must exist
// all the time, even if the installation fails and its release is uninstalled.
func (i *installation) takeOver(t *testing.T) {
	pool := framework.Pool("kept")
	restart := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kept"},
		Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}},
	}
	for _, o := range []client.Object{pool, restart} {
		if err := i.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(when string) {
		t.Helper()
		for _, o := range []client.Object{pool, restart} {
			uid := o.GetUID()
			if i.Refresh(t, o); o.GetUID() != uid || !o.GetDeletionTimestamp().IsZero() {
				t.Fatalf("%s: %s is not the same, or is being deleted", when, o.GetName())
			}
		}
	}
	connect := []string{"--namespace", namespace, "--kubeconfig", i.Kubeconfig}
	install := append(helmArgs("install", framework.Chart()), connect[2:]...)

	if said, err := framework.Helm(t, install...); err == nil || !strings.Contains(said, "invalid ownership metadata") {
		t.Fatalf("helm takes what is not its own: %v\n%s", err, said)
	}
	if said, err := framework.Helm(t, append(install, "--take-ownership")...); err == nil || !strings.Contains(said, "conflict") {
		t.Fatalf("helm takes fields that kubectl has set: %v\n%s", err, said)
	}
	kept("after an installation that failed")
	if said, err := framework.Helm(t, append([]string{"uninstall", release}, connect...)...); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	kept("after its uninstall")

	mustHelm(t, append(install, "--take-ownership", "--force-conflicts")...)
	kept("after the documented commands")
	mustHelm(t, append(helmArgs("upgrade", framework.Chart(), "replicas=1"), append(connect[2:], "--force-conflicts")...)...)
	kept("after an upgrade")
	mustHelm(t, append([]string{"uninstall", release}, connect...)...)
	kept("after an uninstall")
	i.Delete(t, pool)
	i.Delete(t, restart)
}
