// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDevices checks that simulated devices behave like those of a driver: a pod gets one that
// matches its request and starts, the next pod waits until it is free again, and the devices are
// gone with their node.
func TestDevices(t *testing.T) {
	s := sharedSandbox(t)
	client := s.client(t)
	s.must(t, "nodes", "add", "--name-prefix", "accelerated", "--labels", "accelerated=yes", "--devices", "gpu.example.com/small=3,gpu.example.com/large=1")
	slices := client.ResourceV1().ResourceSlices()
	published, err := slices.Get(t.Context(), "accelerated-1-gpu.example.com", metav1.GetOptions{})
	if err != nil || len(published.Spec.Devices) != 4 {
		t.Fatalf("the node has %d devices, want 4: %v", len(published.Spec.Devices), err)
	}
	claims, pods := client.ResourceV1().ResourceClaims("default"), client.CoreV1().Pods("default")
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "large"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu.example.com", // It came with the devices.
		Selectors:       []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu.example.com"].model == "large"`}}},
	}}}
	if _, err := client.ResourceV1().ResourceClaimTemplates("default").Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer s.must(t, "kubectl", "delete", "resourceclaimtemplate", "large")
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"accelerated": "yes"}, ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template.Name}},
			Containers: []corev1.Container{{Name: "c", Image: "example.com/c", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		}}
	}
	running := func(name string) func() string {
		return func() string {
			p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || p.Status.Phase != corev1.PodRunning {
				return fmt.Sprintf("%s is %s: %v", name, p.Status.Phase, err)
			}
			return ""
		}
	}
	for _, name := range []string{"first", "second"} {
		if _, err := pods.Create(t.Context(), pod(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		defer s.run(t, "kubectl", "delete", "pod", name)
		if name == "first" {
			waitFor(t, 5*time.Second, running(name))
		}
	}
	waitFor(t, 5*time.Second, func() string {
		list, err := claims.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 {
			return fmt.Sprintf("%d claims: %v", len(list.Items), err)
		}
		for _, c := range list.Items {
			if a := c.Status.Allocation; a != nil && a.Devices.Results[0].Device == "device-3" {
				return ""
			}
		}
		return "no claim has the large device"
	})
	if why := running("second")(); why == "" {
		t.Error("two pods run with the only large device")
	}
	s.must(t, "kubectl", "delete", "pod", "first")
	waitFor(t, 30*time.Second, running("second"))
	s.must(t, "kubectl", "delete", "pod", "second")
	s.must(t, "kubectl", "delete", "node", "accelerated-1")
	waitFor(t, 30*time.Second, func() string {
		if _, err := slices.Get(t.Context(), "accelerated-1-gpu.example.com", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the devices are left: %v", err)
		}
		return ""
	})
	s.must(t, "kubectl", "delete", "deviceclass", "gpu.example.com")
}
