// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestLossBetweenPods compares pools loss with the control plane for pods that are spread over two
// zones. After the loss of a zone there is room for all of them on the remaining node, and the spread
// constraint, which demands two zones, admits none. The pods of a DaemonSet end with their node.
func TestLossBetweenPods(t *testing.T) {
	w := twoNodes(t, "spread", 0)
	labels := map[string]string{"app": "agent"}
	d := framework.Deployment("web", 0, corev1.PodSpec{})
	d.Namespace = w.name
	cluster.Change(t, d, func() {
		d.Spec.Replicas = new(int32(4))
		d.Spec.Template.Spec.Containers[0].Resources.Requests = list("cpu", "100m")
		d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, MinDomains: new(int32(2)), TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.Spec.Selector,
		}}
	})
	agent := d.Spec.Template.Spec.DeepCopy()
	agent.TopologySpreadConstraints = nil
	cluster.Apply(t, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *agent},
		},
	})
	w.running(t, 4)
	framework.Eventually(t, "each node has a pod of the DaemonSet", func() error {
		if pods := w.podsOf(t, client.MatchingLabels(labels)); len(pods) != 2 || pods[0].Spec.NodeName == "" || pods[1].Spec.NodeName == "" {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	w.pods = 6
	w.awaitPods(t)
	var losses []loss
	answer(t, &losses, "", []string{"pools", "loss", "--node", "spread-0"}, 2)
	if len(losses) != 1 || losses[0].Pods != 2 || losses[0].Unmanaged != 0 || losses[0].homeless() != 2 || len(losses[0].AtMost) > 0 {
		t.Errorf("%+v, want that two of web need a node, and find none", losses)
	}
	w.lose(t, []string{"spread-0"})
	if pending := w.settle(t, []string{"spread-0"}, 5); len(pending) != 2 {
		t.Errorf("the scheduler leaves %d pods without place, want 2", len(pending))
	}
}
