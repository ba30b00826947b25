// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// deschedulerPolicy makes the descheduler evict pods from nodes whose taints they do not tolerate,
// or whose labels no longer match the pods' node affinity.
const deschedulerPolicy = `apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: node-pools
  pluginConfig:
  - name: DefaultEvictor
  - name: RemovePodsViolatingNodeTaints
  - name: RemovePodsViolatingNodeAffinity
    args: {nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints, RemovePodsViolatingNodeAffinity]}
`

// startDescheduler runs the descheduler with the rights in its own manifests. It checks all nodes
// at the given interval, and serves no metrics.
func startDescheduler(t *testing.T, cluster *framework.Cluster, interval string) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(deschedulerPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(framework.ModuleDir(t, "hack/descheduler", "sigs.k8s.io/descheduler"), "kubernetes", "deployment")
	args := fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": [
		"--policy-config-file=%s", "--descheduling-interval=%s", "--secure-port=0", "--v=3"]}]`, policy, interval)
	cluster.MustKubectl(t, "", "apply", "-k", manifests)
	cluster.MustKubectl(t, "", "-n", "kube-system", "patch", "deployment", "descheduler", "--type=json", "-p", args)
	t.Cleanup(func() {
		if _, err := cluster.Kubectl("", "delete", "-k", manifests); err != nil {
			t.Error(err)
		}
	})
	cluster.RunAsPod(t, "DESCHEDULER_BIN", "descheduler", "--from=deployment/kube-system/descheduler")
}

// on returns a Deployment's ready pods as a map from UID to node name.
func on(t *testing.T, cluster *framework.Cluster, d *appsv1.Deployment) map[types.UID]string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := cluster.List(t.Context(), pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	nodes := map[types.UID]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			nodes[pod.UID] = pod.Spec.NodeName
		}
	}
	return nodes
}

// eventuallyOn waits until all of a Deployment's pods are ready and on the given nodes, with at
// least one pod on each node, and returns the pods.
func eventuallyOn(t *testing.T, cluster *framework.Cluster, d *appsv1.Deployment, want ...string) map[types.UID]string {
	t.Helper()
	var pods map[types.UID]string
	framework.Eventually(t, fmt.Sprintf("%s runs on %s", d.Name, want), func() error {
		pods = on(t, cluster, d)
		nodes := slices.Compact(slices.Sorted(maps.Values(pods)))
		if len(pods) != int(*d.Spec.Replicas) || !slices.Equal(nodes, want) {
			return fmt.Errorf("%d ready pods are on %s", len(pods), nodes)
		}
		return nil
	})
	return pods
}

// eventuallyNode waits until a node has exactly the given taints, and the label with the given
// value; "" means that the label is absent.
func eventuallyNode(t *testing.T, cluster *framework.Cluster, name, label, value string, taints ...string) {
	t.Helper()
	framework.Eventually(t, name+" is as its pools ask for", func() error {
		node := framework.Node(name)
		cluster.Refresh(t, node)
		var has []string
		for _, taint := range node.Spec.Taints {
			has = append(has, taint.ToString())
		}
		if node.Labels[label] != value || !slices.Equal(has, taints) {
			return fmt.Errorf("it has %s=%q and the taints %q", label, node.Labels[label], has)
		}
		return nil
	})
}

// poolOf returns a pool that selects the nodes with the given names.
func poolOf(name string, nodes ...tidekeeperv1.LabelValue) *tidekeeperv1.NodePool {
	pool := framework.Pool(name)
	pool.Spec.Selector = &tidekeeperv1.NodeSelector{MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: metav1.LabelSelectorOpIn, Values: nodes},
	}}
	return pool
}

// TestDescheduler checks the combination with the descheduler. Neither a NoSchedule taint nor the
// removal of a label evicts pods. The descheduler moves the pods that no longer fit their nodes,
// and no others, to suitable nodes.
func TestDescheduler(t *testing.T) {
	cluster.AddNodes(t, "desk", 3, "--labels=desk=yes")
	cluster.StartManager(t)
	fast := poolOf("fast", "desk-1", "desk-2")
	fast.Spec.Labels = map[string]tidekeeperv1.LabelValue{"speed": "fast"}
	cluster.Apply(t, fast)
	for _, node := range []string{"desk-1", "desk-2"} {
		eventuallyNode(t, &cluster, node, "speed", "fast")
	}

	team := corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists}
	deployment := func(name, label, value string, tolerations ...corev1.Toleration) *appsv1.Deployment {
		d := framework.Deployment(name, 6, *framework.App.DeepCopy())
		// The pods use node affinity because the descheduler ignores a nodeSelector.
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}},
		}}}
		d.Spec.Template.Spec.Tolerations = tolerations
		cluster.Apply(t, d)
		return d
	}
	web := deployment("web", "desk", "yes")
	tolerant := deployment("tolerant", "desk", "yes", team)
	quick := deployment("quick", "speed", "fast", team)
	ofWeb := eventuallyOn(t, &cluster, web, "desk-1", "desk-2", "desk-3")
	ofTolerant := eventuallyOn(t, &cluster, tolerant, "desk-1", "desk-2", "desk-3")
	ofQuick := eventuallyOn(t, &cluster, quick, "desk-1", "desk-2")

	// desk-1 is reserved for a team, and desk-2 is no longer fast.
	teams := poolOf("team", "desk-1")
	teams.Spec.Taints = []tidekeeperv1.Taint{{Key: "team", Value: "blue", Effect: corev1.TaintEffectNoSchedule}}
	cluster.Apply(t, teams)
	cluster.Change(t, fast, func() { fast.Spec.Selector.MatchExpressions[0].Values = []tidekeeperv1.LabelValue{"desk-1"} })
	eventuallyNode(t, &cluster, "desk-1", "speed", "fast", "team=blue:NoSchedule")
	eventuallyNode(t, &cluster, "desk-2", "speed", "")
	for d, before := range map[*appsv1.Deployment]map[types.UID]string{web: ofWeb, quick: ofQuick} {
		if after := on(t, &cluster, d); !maps.Equal(before, after) {
			t.Errorf("without the descheduler, the pods of %s were %v and are %v", d.Name, before, after)
		}
	}

	startDescheduler(t, &cluster, "2s")
	moved := func(d *appsv1.Deployment, before map[types.UID]string, from string, to ...string) {
		t.Helper()
		after := eventuallyOn(t, &cluster, d, to...)
		for pod, node := range before {
			if _, stayed := after[pod]; stayed == (node == from) {
				t.Errorf("of %s, is the pod that was on %s still there? %v", d.Name, node, stayed)
			}
		}
	}
	moved(web, ofWeb, "desk-1", "desk-2", "desk-3")
	moved(quick, ofQuick, "desk-2", "desk-1")
	moved(tolerant, ofTolerant, "", "desk-1", "desk-2", "desk-3")
}
