// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tolerated lists the keys of the taints for which the DaemonSet controller adds tolerations to all
// pods of DaemonSets.
var tolerated = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable, corev1.TaintNodeNetworkUnavailable,
}

// DaemonSetPods returns the pods of DaemonSets that would run on a new node.
func DaemonSetPods(n *corev1.Node, sets []*appsv1.DaemonSet) (pods []*corev1.Pod) {
	for _, set := range sets {
		if !set.DeletionTimestamp.IsZero() {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name + "-" + n.Name, Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: new(true)}},
		}}
		set.Spec.Template.Spec.DeepCopyInto(&pod.Spec)
		for _, key := range tolerated {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		if shape := ShapeOf(pod); len(shape.refusals(n)) == 0 {
			pod.Spec.NodeName = n.Name
			pods = append(pods, pod)
		}
	}
	return pods
}
