// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
)

// TestDevicesFollowTheAnnotation checks that the ResourceSlices of a node have the devices of its
// annotation: at first, after a change, after a restart of the kubelets, and not without it.
func TestDevicesFollowTheAnnotation(t *testing.T) {
	client := fake.NewClientset()
	d := newDevices(client)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}}
	for _, step := range []struct {
		annotation string
		restart    bool
		gpus, nics int
	}{
		{"", false, 0, 0},
		{"gpu.example.com=2,nic.example.com=1", false, 2, 1},
		{"gpu.example.com=3,nic.example.com=1", false, 3, 1},
		{"gpu.example.com=3", false, 3, 0},
		{"gpu.example.com=3", true, 3, 0},
		{"gpu.example.com=1", true, 1, 0},
		{"many", false, 0, 0},
		{"", false, 0, 0},
	} {
		if step.restart {
			d = newDevices(client)
		}
		n.Annotations = map[string]string{node.DevicesAnnotation: step.annotation}
		if err := d.publish(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if gpus, nics := devicesOf(t, client, "gpu.example.com"), devicesOf(t, client, "nic.example.com"); gpus != step.gpus || nics != step.nics {
			t.Errorf("%q: %d GPUs and %d NICs, want %d and %d", step.annotation, gpus, nics, step.gpus, step.nics)
		}
	}
	if classes, err := client.ResourceV1().DeviceClasses().List(t.Context(), metav1.ListOptions{}); err != nil || len(classes.Items) != 2 {
		t.Errorf("%d DeviceClasses, want one for each driver: %v", len(classes.Items), err)
	}
}

// TestDevicesOfNextNode checks that the devices of a node wait until the ResourceSlice of an earlier
// node of the same name is gone.
func TestDevicesOfNextNode(t *testing.T) {
	client := fake.NewClientset()
	d := newDevices(client)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1", Annotations: map[string]string{node.DevicesAnnotation: "gpu.example.com=2"}}}
	if err := d.publish(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	d.forget("n")
	n.UID = "2"
	if err := d.publish(t.Context(), n); err == nil {
		t.Error("the ResourceSlice of an earlier node is used")
	}
	if err := client.ResourceV1().ResourceSlices().Delete(t.Context(), "n-gpu.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := d.publish(t.Context(), n); err != nil || devicesOf(t, client, "gpu.example.com") != 2 {
		t.Errorf("the node has no devices: %v", err)
	}
}

func devicesOf(t *testing.T, client kubernetes.Interface, driver string) (count int) {
	t.Helper()
	list, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		if s.Spec.Driver == driver {
			count += len(s.Spec.Devices)
		}
	}
	return count
}
