// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestMigrateManifestsAsTheyStand converts the manifests of the original projects' objects as
// published, including their status and, for the Eru, the fields that its API server had added. The
// API server must accept the converted objects, and the converted node pool must get the same
// status as the original pool.
func TestMigrateManifestsAsTheyStand(t *testing.T) {
	const dir = "testdata"
	r := command{args: []string{"migrate", "-f", dir}}.run(t)
	const want = `apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata:
  name: worker
spec:
  handler: runc
  labels:
    node-pool.lailin.xyz/worker: "10"
  taints:
  - effect: NoSchedule
    key: node-pool.lailin.xyz
    value: worker
---
apiVersion: tidekeeper.dev/v1
kind: ScheduledRestart
metadata:
  name: opsnatmonitor-v1
  namespace: lb6
spec:
  schedule: 0 0 * * *
  suspend: true
  targetRef:
    kind: Deployment
    name: opsnatmonitor-v1
  timeZone: UTC
`
	if err := diff(want, r.stdout); err != nil || r.code != 2 {
		t.Errorf("exit code %d; objects %v", r.code, err)
	}
	if strings.Contains(r.stderr, "left out") || strings.Count(r.stderr, "\nto do: ") != 2 {
		t.Errorf("stderr, want nothing left out and two things to do:\n%s", r.stderr)
	}

	original := &unstructured.Unstructured{}
	text, err := os.ReadFile(filepath.Join(dir, "nodepool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &original.Object); err != nil {
		t.Fatal(err)
	}
	allocatable, _, err := unstructured.NestedStringMap(original.Object, "status", "allocatable")
	if err != nil {
		t.Fatal(err)
	}
	cluster.StartManager(t)
	cluster.AddNodes(t, "worker", 2, "--pool", "worker", "--allocatable",
		"cpu=4,memory=3064520Ki,ephemeral-storage=92013256Ki,hugepages-1Gi=0,hugepages-2Mi=0,pods=110")
	aNamespace(t, "lb6")
	aDeployment(t, "lb6", "opsnatmonitor-v1")
	for _, o := range documents(t, r.stdout) {
		deletedAtTheEnd(t, o)
	}
	kubectl(t, r.stdout, "apply", "--validate=strict", "-f", "-")

	pool := framework.Pool("worker")
	framework.Eventually(t, "the node pool has the status of the original", func() error {
		cluster.Refresh(t, pool)
		got := map[string]string{}
		for name, quantity := range pool.Status.Allocatable {
			got[string(name)] = quantity.String()
		}
		if err := diff(allocatable, got); err != nil {
			return err
		}
		return framework.ReadyIs(pool.Status.Conditions, pool.Generation, "Healthy")
	})
	if count, _, err := unstructured.NestedFieldNoCopy(original.Object, "status", "nodeCount"); err != nil || count != any(float64(pool.Status.NodeCount)) {
		t.Errorf("%d nodes, the original had %v (%v)", pool.Status.NodeCount, count, err)
	}
	node := framework.Node("worker-1")
	cluster.Refresh(t, node)
	if want := (corev1.Taint{Key: "node-pool.lailin.xyz", Value: "worker", Effect: corev1.TaintEffectNoSchedule}); len(node.Spec.Taints) != 1 || node.Spec.Taints[0] != want ||
		node.Labels["node-pool.lailin.xyz/worker"] != "10" {
		t.Errorf("node worker-1 has the taints %v and the labels %v", node.Spec.Taints, node.Labels)
	}
	restart := framework.ScheduledRestart("opsnatmonitor-v1")
	restart.Namespace = "lb6"
	framework.Eventually(t, "the restart waits to be enabled", func() error {
		cluster.Refresh(t, restart)
		return framework.ReadyIs(restart.Status.Conditions, restart.Generation, "Suspended")
	})
	if restart.UID == "1e4a28d9-44f4-11eb-89e4-fa163ebf9460" || len(restart.Annotations) > 1 || metav1.GetControllerOf(restart) != nil {
		t.Errorf("the restart carries more of the original than its spec: %+v", restart.ObjectMeta)
	}
}
