// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAddNodes(t *testing.T) {
	s := sharedSandbox(t)
	out := s.must(t, "nodes", "add", "--pool", "gpu", "--count", "3", "--allocatable", "cpu=32,memory=128Gi,example.com/gpu=4",
		"--labels", "zone=a,disk=ssd", "--taints", "dedicated=gpu:NoSchedule,spot:PreferNoSchedule")
	if !strings.Contains(out, "Added 3 nodes in") || !strings.Contains(out, "gpu-1 to gpu-3") {
		t.Errorf("nodes add said %q", out)
	}
	n, err := s.client(t).CoreV1().Nodes().Get(t.Context(), "gpu-3", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"node-role.kubernetes.io/gpu": "", "zone": "a", "disk": "ssd",
		corev1.LabelHostname: "gpu-3", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	} {
		if got, ok := n.Labels[key]; !ok || got != want {
			t.Errorf("label %s is %q (%t), want %q", key, got, ok, want)
		}
	}
	if len(n.Spec.Taints) != 2 || n.Spec.Taints[0].ToString() != "dedicated=gpu:NoSchedule" || n.Spec.Taints[1].ToString() != "spot:PreferNoSchedule" {
		t.Errorf("taints: %v", n.Spec.Taints)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "32", "memory": "128Gi", "example.com/gpu": "4", "pods": "110"} {
		if got := n.Status.Allocatable[name]; got.String() != want {
			t.Errorf("allocatable %s is %s, want %s", name, &got, want)
		}
	}
	if out := s.must(t, "nodes", "add", "--pool", "gpu"); !strings.Contains(out, "gpu-4.") {
		t.Errorf("nodes add, again, said %q", out)
	}
	s.must(t, "kubectl", "delete", "node", "gpu-1", "gpu-2", "gpu-3", "gpu-4")
}

func TestNodeNotReadyAndBack(t *testing.T) {
	s := sharedSandbox(t)
	client := s.client(t)
	s.must(t, "nodes", "add", "--name-prefix", "sick", "--labels", "sick=yes")
	defer s.must(t, "kubectl", "delete", "node", "sick-1")
	s.must(t, "nodes", "not-ready", "sick-1", "--message", "on fire")
	taint := func() bool {
		n, err := client.CoreV1().Nodes().Get(t.Context(), "sick-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && c.Message != "on fire" {
				t.Fatalf("condition %+v", c)
			}
		}
		for _, taint := range n.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady {
				return true
			}
		}
		return false
	}
	// The controller manager taints the node because it is not ready.
	waitFor(t, 15*time.Second, func() string {
		if !taint() {
			return "no taint not-ready"
		}
		return ""
	})
	// The kubelet of a node that is not ready must not change a pod on the node. Bind the pod to
	// the node explicitly, because the scheduler would not choose a tainted node.
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stuck", Labels: map[string]string{"app": "stuck"}},
		Spec: corev1.PodSpec{
			NodeName:    "sick-1",
			Containers:  []corev1.Container{{Name: "c", Image: "example.com/none"}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// This pod is bound explicitly, too: the scheduler may not know yet that the first node is tainted.
	alone(t, client, "elsewhere", nil, corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "example.com/none"}}})
	waitPods(t, client, "elsewhere", 1, ready)
	if pod := pods(t, client, "stuck")[0]; pod.Status.StartTime != nil {
		t.Errorf("a node that is not ready started a pod: %+v", pod.Status)
	}
	s.must(t, "nodes", "ready", "sick-1")
	waitPods(t, client, "stuck", 1, ready)
	waitFor(t, 15*time.Second, func() string {
		if taint() {
			return "the taint not-ready is still there"
		}
		return ""
	})
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitPods(t, client, "stuck", 0, ready)
}

func TestNodeMadeByOthersBecomesReady(t *testing.T) {
	client := sharedSandbox(t).client(t)
	if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.CoreV1().Nodes().Delete(t.Context(), "foreign", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	waitFor(t, 10*time.Second, func() string {
		n, err := client.CoreV1().Nodes().Get(t.Context(), "foreign", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if n.Status.Allocatable.Cpu().IsZero() || len(n.Spec.Taints) > 0 {
			return "not usable yet"
		}
		return ""
	})
}
