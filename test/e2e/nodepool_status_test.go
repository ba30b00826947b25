// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestNodePool_Status checks that the status reports the pool's health, its number of nodes, and
// the sum of their resources.
func TestNodePool_Status(t *testing.T) {
	cluster.StartManager(t)
	addMembers(t, "s05", 2, "--allocatable", "cpu=4,memory=3064520Ki,ephemeral-storage=100Gi,hugepages-2Mi=64Mi,pods=110,example.com/gpu=1")
	cluster.Apply(t, pool("s05"))
	got := healthyWith(t, "s05", 2)
	want := corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("6129040Ki"), "pods": resource.MustParse("220"),
		"ephemeral-storage": resource.MustParse("200Gi"), "hugepages-2Mi": resource.MustParse("128Mi"), "example.com/gpu": resource.MustParse("2"),
	}
	if err := diff(plain(want), plain(got.Status.Allocatable)); err != nil {
		t.Errorf("allocatable %v", err)
	}
	if err := diff([]int64{int64(2), got.Generation}, []int64{int64(got.Status.ReadyNodes), got.Status.ObservedGeneration}); err != nil {
		t.Errorf("ready nodes and observed generation %v", err)
	}

	cluster.Sandbox(t, "nodes", "not-ready", "s05-1")
	eventuallyPool(t, "s05", "sees that a node is not ready", func(p *tidekeeperv1.NodePool) error {
		return errors.Join(is(p, "NodesNotReady"), diff(int32(1), p.Status.ReadyNodes))
	})
	cluster.Sandbox(t, "nodes", "ready", "s05-1")
	healthyWith(t, "s05", 2)

	// The sums follow changes of the members, including the removal of the last one.
	relabel(t, "s05-2", map[string]string{role("s05"): "-"})
	want = corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("3064520Ki"), "pods": resource.MustParse("110"),
		"ephemeral-storage": resource.MustParse("100Gi"), "hugepages-2Mi": resource.MustParse("64Mi"), "example.com/gpu": resource.MustParse("1"),
	}
	got = healthyWith(t, "s05", 1)
	if err := errors.Join(diff(plain(want), plain(got.Status.Allocatable)), diff(plain(want), plain(got.Status.Capacity))); err != nil {
		t.Errorf("when a node has left, allocatable and capacity %v", err)
	}
	relabel(t, "s05-1", map[string]string{role("s05"): "-"})
	got = eventuallyReason(t, "s05", "NoNodes")
	if err := diff([]int32{0, 0}, []int32{got.Status.NodeCount, got.Status.ReadyNodes}); err != nil {
		t.Errorf("when the last node has left, nodes and ready nodes %v", err)
	}
	if err := diff(map[string]string{}, plain(got.Status.Allocatable)); err != nil {
		t.Errorf("when the last node has left, allocatable %v", err)
	}
}

func plain(list corev1.ResourceList) map[string]string {
	all := map[string]string{}
	for name, quantity := range list {
		all[string(name)] = quantity.String()
	}
	return all
}

// TestNodePool_Utilization checks the sum of the pods' requests, which are counted as in the
// scheduler, and its percentage of the allocatable resources.
func TestNodePool_Utilization(t *testing.T) {
	cluster.StartManager(t, "--status-interval=100ms")
	addMembers(t, "s06", 2, "--allocatable", "cpu=4,memory=8Gi,pods=110")
	cluster.Apply(t, pool("s06"))
	healthyWith(t, "s06", 2)
	level := func(cpu, memory, pods string, percent ...int32) {
		t.Helper()
		eventuallyPool(t, "s06", "has its level", func(p *tidekeeperv1.NodePool) error {
			return errors.Join(
				diff(map[string]string{"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "0"}, plain(p.Status.Requested)),
				diff(percentages(percent...), p.Status.RequestedPercent))
		})
	}
	// Without pods, the status reports requests of 0 instead of omitting them.
	level("0", "0", "0", 0, 0, 0)

	// Each pod has an init container that requests more than the other containers, a sidecar, and
	// two regular containers.
	always := corev1.ContainerRestartPolicyAlways
	container := func(name, cpu, memory string) corev1.Container {
		return corev1.Container{Name: name, Image: "example.com/app:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}}
	}
	sidecar := container("sidecar", "100m", "64Mi")
	sidecar.RestartPolicy = &always
	spec := corev1.PodSpec{
		NodeSelector:   map[string]string{role("s06"): ""},
		Tolerations:    []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		InitContainers: []corev1.Container{container("init", "900m", "64Mi"), sidecar},
		Containers:     []corev1.Container{container("a", "250m", "128Mi"), container("b", "250m", "128Mi")},
	}
	d := deployment("s06", 4, spec)
	cluster.Apply(t, d)
	// A pod requests the larger of the init container's request and the sum of the other
	// containers' requests: 900m instead of 100m + 250m + 250m CPU, and 320Mi instead of 64Mi.
	level("3600m", "1280Mi", "4", 45, 7, 1)

	cluster.Change(t, d, func() { replicas := int32(1); d.Spec.Replicas = &replicas })
	level("900m", "320Mi", "1", 11, 1, 0)

	// A completed pod no longer requests anything.
	done := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "s06-once", Namespace: metav1.NamespaceDefault}, Spec: *spec.DeepCopy()}
	done.Spec.RestartPolicy = corev1.RestartPolicyNever
	cluster.Apply(t, done)
	level("1800m", "640Mi", "2", 22, 3, 0)
	cluster.ChangeStatus(t, done, func() { done.Status.Phase = corev1.PodSucceeded })
	level("900m", "320Mi", "1", 11, 1, 0)

	cluster.Delete(t, d)
	eventuallyPool(t, "s06", "is empty again", func(p *tidekeeperv1.NodePool) error {
		return diff(percentages(0, 0, 0), p.Status.RequestedPercent)
	})
}

// percentages returns the given percentages of CPU, memory and pods as a map, for nodes that also
// have disks.
func percentages(of ...int32) map[corev1.ResourceName]int32 {
	return map[corev1.ResourceName]int32{"cpu": of[0], "memory": of[1], "pods": of[2], "ephemeral-storage": 0}
}

// TestNodePool_Columns checks the printer columns that kubectl get shows for a pool.
func TestNodePool_Columns(t *testing.T) {
	cluster.StartManager(t)
	addMembers(t, "s07", 2, "--allocatable", "cpu=4,memory=8Gi,pods=110")
	p := pool("s07")
	p.Spec.Handler = "runc"
	cluster.Apply(t, p)
	healthyWith(t, "s07", 2)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "s07"}}
	pod.Spec.NodeName = "s07-1"
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
	}}}
	cluster.Apply(t, pod)
	framework.Eventually(t, "the pod is counted", func() error {
		cluster.Refresh(t, p)
		return errors.Join(diff(int32(25), p.Status.RequestedPercent["cpu"]), diff([]int32{2, 2}, []int32{p.Status.ReadyNodes, p.Status.UsableNodes}), is(p, "Healthy"))
	})
	for _, tt := range []struct {
		args []string
		want [][]string
	}{
		{
			args: []string{"get", "nodepool", "s07"},
			want: [][]string{
				{"NAME", "STATUS", "NODECOUNT", "READY", "CPU", "MEMORY", "PODS", "AGE"},
				{"s07", "Healthy", "2", "2", "2/8", "(25%)", "4/16Gi", "(25%)", "1/220", "(0%)"},
			},
		},
		{
			args: []string{"get", "npool", "s07", "-o", "wide"},
			want: [][]string{
				{"NAME", "STATUS", "NODECOUNT", "READY", "CPU", "MEMORY", "PODS", "AGE", "USABLE", "HEADROOM", "DRAINABLE", "HANDLER", "MESSAGE"},
				{"s07", "Healthy", "2", "2", "2/8", "(25%)", "4/16Gi", "(25%)", "1/220", "(0%)", "AGE", "2", "runc"},
			},
		},
	} {
		out, err := cluster.Kubectl("", tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for i, want := range tt.want {
			got := strings.Fields(lines[i])
			if age := slices.Index(want, "AGE"); i > 0 && age >= 0 && len(got) > age {
				got[age] = "AGE"
			}
			if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
				t.Errorf("kubectl %s prints, in line %d, %q; want it to begin with %q", strings.Join(tt.args, " "), i, got, want)
			}
		}
	}
}

// TestNodePool_Events checks that events about the pool report nodes that join and leave, and that
// a single event covers many nodes.
func TestNodePool_Events(t *testing.T) {
	proxy := cluster.StartProxy(t, "")
	cluster.StartManager(t, "--kubeconfig", proxy.Kubeconfig)
	cluster.Apply(t, pool("s08"))
	eventuallyReason(t, "s08", "NoNodes")
	// The watch is frozen so that the manager sees all nodes at the same time, regardless of how
	// long their creation takes.
	proxy.Freeze(t, "match: {resources: [nodes]}")
	addMembers(t, "s08", 40)
	proxy.Thaw(t)
	cluster.EventuallyEvent(t, "NodePool", "s08", "Normal NodesJoined: 40 nodes (s08-1, s08-10, s08-11, s08-12, s08-13 and 35 more) joined the pool")
	relabel(t, "s08-7", map[string]string{role("s08"): "-"})
	cluster.EventuallyEvent(t, "NodePool", "s08", "Normal NodesLeft: node s08-7 left the pool")
	out, err := cluster.Kubectl("", "describe", "nodepool", "s08")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "node s08-7 left the pool") {
		t.Errorf("kubectl describe does not show it:\n%s", out)
	}
}

// TestNodePool_ErrorsAreWarnings checks that a rejected write is reported in a Warning event about
// the pool, with the API server's message.
func TestNodePool_ErrorsAreWarnings(t *testing.T) {
	cluster.StartManager(t)
	out, err := cluster.Kubectl(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: s08e}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}]
  validations: [{expression: "!('example.com/s08e' in object.metadata.?labels.orValue({}))", message: "not in this house"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: s08e}
spec: {policyName: s08e, validationActions: [Deny]}
`, "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out)
	t.Cleanup(func() {
		if _, err := cluster.Kubectl("", "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "s08e"); err != nil {
			t.Error(err)
		}
	})
	addMembers(t, "s08e", 1)
	// The API server enforces a new policy with a short delay.
	framework.Eventually(t, "the policy is in force", func() error {
		node := framework.Node("s08e-1")
		err := cluster.Patch(t.Context(), node, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.com/s08e":"probe"}}}`)), client.DryRunAll)
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("it allows what it should deny"), err)
		}
		return nil
	})
	cluster.Apply(t, pool("s08e"))
	framework.Eventually(t, "the refusal is reported", func() error {
		for _, event := range cluster.Events(t, "NodePool", "s08e") {
			if strings.HasPrefix(event, "Warning NodePatchFailed: could not update node s08e-1: ") && strings.Contains(event, "not in this house") {
				return nil
			}
		}
		return fmt.Errorf("events: %q", cluster.Events(t, "NodePool", "s08e"))
	})
	eventuallyReason(t, "s08e", "NodePatchRefused")
}
