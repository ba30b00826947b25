// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestStartBeforeTheKinds checks that a manager may be started while its CRDs are being created,
// since CRDs exist before their kinds are served. If a kind is never served, the manager must exit
// with an error that names the remedy.
func TestStartBeforeTheKinds(t *testing.T) {
	empty := framework.StartEmpty(t, "--nodes=0")
	const waits = "Waiting for the cluster to serve the kinds"
	start := func(t *testing.T) *framework.Manager {
		probes := framework.FreeAddress(t)
		m := framework.Run(t, "--kubeconfig", empty.Kubeconfig, "--health-probe-bind-address", probes, "--metrics-bind-address=0", "--log-format=text")
		m.Probes = "http://" + probes
		framework.Eventually(t, "it logs that it waits", func() error {
			if !strings.Contains(m.Log(), waits) {
				return errors.New(m.Log())
			}
			return nil
		})
		return m
	}

	t.Run("never", func(t *testing.T) {
		m := start(t)
		if code := m.Wait(t); code != 1 {
			t.Errorf("it exits with the code %d, want 1", code)
		}
		lines := strings.Split(strings.TrimSpace(m.Log()), "\n")
		want := "does not know the kind NodePool, ScheduledRestart, Freeze: install it first: kubectl apply -k config/crd"
		if len(lines) != 2 || !strings.Contains(lines[0], waits) || !strings.HasSuffix(lines[1], want) {
			t.Errorf("it logs:\n%s\nwant one line that it waits, and one that ends in %q", m.Log(), want)
		}
	})
	t.Run("a moment later", func(t *testing.T) {
		m := start(t)
		if _, err := empty.Kubectl("", "apply", "-k", filepath.Join(framework.Root(), "config", "crd")); err != nil {
			t.Fatal(err)
		}
		m.AwaitReady(t)
		if got := strings.Count(m.Log(), waits); got != 1 {
			t.Errorf("it logs %d times that it waits", got)
		}
		m.Stop(t)
	})
}

// TestStartWithASlowListOfPods checks that the manager becomes ready even if the API server rejects
// the second page of every list of pods because the list's version has expired.
func TestStartWithASlowListOfPods(t *testing.T) {
	const pods = 501 // The first page contains 500 pods.
	ctx, labels := t.Context(), client.MatchingLabels{"app": "slow-list"}
	for i := range pods {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("slow-list-", i), Namespace: metav1.NamespaceDefault, Labels: labels},
			Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: app.Containers},
		}
		if err := cluster.Create(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := cluster.DeleteAllOf(context.Background(), &corev1.Pod{}, client.InNamespace(metav1.NamespaceDefault), labels, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	proxy := cluster.StartProxy(t, `rules:
- name: gone
  match: {verbs: [list], resources: [pods]}
  count: {from: 2, every: 2}
  fault: {kind: Error, code: 410, reason: Expired}`)
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	if got := proxy.Fired(t, "gone"); got != 1 {
		t.Errorf("%d pages were refused, want 1", got)
	}
}
