// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestProxyOtherOperator checks that third-party controllers work behind the proxy: the controllers
// of kube-controller-manager that create the ReplicaSets and pods of Deployments. They roll out a
// Deployment twice while every kind of fault is injected, and the result must be the same as
// without faults.
func TestProxyOtherOperator(t *testing.T) {
	t.Parallel()
	const replicas = 6
	s := start(t, "--nodes=3")
	s.must(t, "component", "kill", "kube-controller-manager")
	scenario, err := os.ReadFile(filepath.Join("testdata", "bad-day.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, s, string(scenario))
	runControllers(t, p.kubeconfig, "deployment-controller,replicaset-controller")

	client := s.client(t)
	deploy(t, client, "web", replicas, nil)
	waitPods(t, client, "web", replicas, ready)
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"example.com/other"}]}}}}`)
	if _, err := client.AppsV1().Deployments("default").Patch(t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, time.Minute, func() string {
		d, err := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != replicas || s.AvailableReplicas != replicas || s.Replicas != replicas {
			return fmt.Sprintf("the Deployment: %+v", s)
		}
		return ""
	})
	waitPods(t, client, "web", replicas, func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Spec.Containers[0].Image == "example.com/other"
	})
	sets, err := client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sets.Items) != 2 {
		t.Errorf("two pod templates have %d ReplicaSets", len(sets.Items))
	}

	var list struct {
		Rules []struct {
			Name           string
			Matched, Fired int
		}
	}
	if err := json.Unmarshal([]byte(p.call(t, http.MethodGet, "/rules", "")), &list); err != nil {
		t.Fatal(err)
	}
	for _, rule := range list.Rules {
		t.Logf("%-9s was injected into %3d of %3d", rule.Name, rule.Fired, rule.Matched)
		if rule.Fired == 0 {
			t.Errorf("rule %s never fired", rule.Name)
		}
	}
}

// runControllers runs controllers of kube-controller-manager until the test ends.
func runControllers(t *testing.T, kubeconfig, controllers string) {
	t.Helper()
	link := filepath.Join(t.TempDir(), "kube-controller-manager")
	absolute, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(absolute, link); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(link + ".log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link, "--kubeconfig="+kubeconfig, "--controllers="+controllers, "--leader-elect=false", "--secure-port=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the log of kube-controller-manager:\n%s", text)
		}
	})
}
