// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// isDue reports whether the taints of a node show that it is still to be drained.
func isDue(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == tidekeeperv1.MaintenanceDueTaint })
}

// eventuallyDue waits until a node is due for maintenance, or no longer.
func eventuallyDue(t *testing.T, name string, want bool) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("node %s is due: %t", name, want), func() error {
		node := framework.Node(name)
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		return diff(want, isDue(node))
	})
}

// halfANode returns a pod that requests half of the processors of the nodes of a pool.
func halfANode(pool, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{role(pool): ""}, Containers: []corev1.Container{{
			Name: "app", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		}}},
	}
}

// TestMaintenance_PodsAvoidNodesThatAreDue checks that the scheduler places pods rather on nodes that are
// not drained next, although these nodes are less free; and that the taint behind this is removed while
// no drain may begin, and when the NodeMaintenance is deleted.
func TestMaintenance_PodsAvoidNodesThatAreDue(t *testing.T) {
	cluster.StartManager(t, maintaining)
	const size = "--allocatable=cpu=4,memory=16Gi,pods=110"
	addMembers(t, "avoid", 1, size)
	d := recreated(t, "avoid")
	budget := minAvailableOf(d, intstr.FromInt32(1))
	cluster.Apply(t, budget)
	addMembers(t, "avoid-other", 1, size, "--pool", "avoid")
	filler := halfANode("avoid", "avoid-filler")
	filler.Spec.NodeName = "avoid-other-1"
	cluster.Apply(t, filler)
	cluster.AddNodes(t, "avoid-due", 1, size, "--pool", "avoid")

	m := maintenanceOf("avoid", "")
	m.Spec.Nodes = tidekeeperv1.MaintenanceNodes{Names: []string{"avoid-1", "avoid-due-1"}}
	cluster.Apply(t, m)
	eventuallyDue(t, "avoid-due-1", true)
	// The scheduler may see the taint later than this test. It is certain to have seen it when it places a pod on the node
	// that is half full.
	attempt := 0
	framework.Eventually(t, "the scheduler avoids the node that is due", func() error {
		attempt++
		pod := halfANode("avoid", fmt.Sprintf("avoid-probe-%d", attempt))
		cluster.Apply(t, pod)
		framework.Eventually(t, "the probe is placed", func() error {
			cluster.Refresh(t, pod)
			if pod.Spec.NodeName == "" {
				return fmt.Errorf("%+v", pod.Status.Conditions)
			}
			return nil
		})
		cluster.Delete(t, pod)
		return diff(filler.Spec.NodeName, pod.Spec.NodeName)
	})
	cluster.Delete(t, budget)
	eventuallyMaintained(t, m, "has drained the first node", inPhase("avoid-1", tidekeeperv1.NodeDrained))
	framework.Eventually(t, "the pod has moved to the node that is not drained next", func() error {
		list := standing(t, "avoid")
		if len(list) != 1 {
			return fmt.Errorf("%d pods", len(list))
		}
		return diff(filler.Spec.NodeName, list[0].Spec.NodeName)
	})

	cluster.Change(t, m, func() { m.Spec.Suspend = true })
	eventuallyDue(t, "avoid-due-1", false)
	cluster.Change(t, m, func() { m.Spec.Suspend = false })
	eventuallyDue(t, "avoid-due-1", true)
	cluster.Delete(t, m)
	withoutTrace(t, []string{"avoid-1", "avoid-due-1", "avoid-other-1"})
}
