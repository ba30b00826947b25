// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestFitLikeEachKind checks that pools fit --like accepts each kind of workload, and a pod with
// all the fields that are set after a pod's creation.
func TestFitLikeEachKind(t *testing.T) {
	w := aSmallWorld(t, "like")
	labels := map[string]string{"app": "like"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{worldLabel: w.name}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{container("app", list("cpu", "400m"))},
	}}
	claimed := *template.DeepCopy()
	claimed.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	cluster.Apply(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "like"}, Provisioner: "like.example.com", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)})
	meta, selector := metav1.ObjectMeta{Name: "like", Namespace: w.name}, &metav1.LabelSelector{MatchLabels: labels}
	cluster.Apply(t, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: selector, Template: template}})
	cluster.Apply(t, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(0)), Selector: selector, Template: claimed, ServiceName: "like",
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("like"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "1Gi")},
		}}},
	}})
	pod := &corev1.Pod{ObjectMeta: meta, Spec: *template.Spec.DeepCopy()}
	cluster.Apply(t, pod)
	framework.Eventually(t, "the pod runs", func() error {
		cluster.Refresh(t, pod)
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
	// The kubelet may write the pod's status at the same time.
	framework.Eventually(t, "the pod has an ephemeral container", func() error {
		cluster.Refresh(t, pod)
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "example.com/debug:1"}}}
		err := cluster.SubResource("ephemeralcontainers").Update(t.Context(), pod)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err
	})
	w.pods = 1
	w.awaitPods(t)
	// The nodes have room for five copies, one of which already exists.
	for like, atMost := range map[string][]string{"deployment/like": nil, "sts/like": nil, "pod/like": nil} {
		if f := w.fit(t, "", "--like", like); f.Copies != 4 || f.OnEmptyNode != 5 || !slices.Equal(f.AtMost, atMost) {
			t.Errorf("--like %s: %+v, want 4 copies, 5 on an empty node, at most because of %v", like, f, atMost)
		}
	}
	cluster.Apply(t, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}})
	framework.Eventually(t, "the DaemonSet's pod takes room also on an empty node", func() error {
		if f := w.fit(t, "", "--like", "ds/like"); f.Copies != 3 || f.OnEmptyNode != 4 {
			return fmt.Errorf("%+v", f)
		}
		return nil
	})
}
