// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestNewNode(t *testing.T) {
	n := Template{
		Labels:      map[string]string{RolePrefix + "gpu": "", corev1.LabelArchStable: "arm64"},
		Taints:      []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32")},
	}.New("gpu-1", netip.MustParseAddr("172.16.0.1"), "v1.2.3", time.Now())
	if !Schedulable(n) || !Reported(n) {
		t.Errorf("a new node is not ready: %v", n.Status.Conditions)
	}
	for key, want := range map[string]string{
		RolePrefix + "gpu": "", corev1.LabelHostname: "gpu-1", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "arm64",
	} {
		if got, ok := n.Labels[key]; !ok || got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if cpu := n.Status.Capacity.Cpu().String(); cpu != "32" {
		t.Errorf("capacity of cpu is %s, want 32", cpu)
	}
	if pods := n.Status.Allocatable.Pods().String(); pods != "110" {
		t.Errorf("allocatable pods are %s, want 110", pods)
	}
	if n.Status.NodeInfo.KubeletVersion != "v1.2.3" {
		t.Errorf("the kubelet is of the release %s, want v1.2.3", n.Status.NodeInfo.KubeletVersion)
	}
	if n.Status.NodeInfo.Architecture != "arm64" {
		t.Errorf("architecture %q, want arm64", n.Status.NodeInfo.Architecture)
	}
}

func TestNotReadyAndBack(t *testing.T) {
	n := Template{}.New("n", netip.MustParseAddr("172.16.0.1"), "v1.2.3", time.Unix(100, 0))
	n.Annotations = map[string]string{NotReadyAnnotation: "on fire"}
	n.Status = Status(n, "v1.2.3", time.Unix(200, 0))
	if Ready(n) {
		t.Fatal("the node is still ready")
	}
	for _, c := range n.Status.Conditions {
		want := metav1.Unix(100, 0)
		if c.Type == corev1.NodeReady {
			want = metav1.Unix(200, 0)
			if c.Message != "on fire" {
				t.Errorf("message %q", c.Message)
			}
		}
		if !c.LastTransitionTime.Equal(&want) {
			t.Errorf("%s changed at %s, want %s", c.Type, c.LastTransitionTime, want)
		}
	}
	n.Annotations = nil
	n.Status = Status(n, "v1.2.3", time.Unix(300, 0))
	if !Ready(n) {
		t.Error("the node did not come back")
	}
}

func TestStatusOfForeignNodeIsFilledIn(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if Reported(n) {
		t.Error("a node without conditions counts as reported")
	}
	n.Status = Status(n, "v1.2.3", time.Now())
	if !Ready(n) || n.Status.Allocatable.Cpu().IsZero() || n.Status.Capacity.Cpu().IsZero() {
		t.Errorf("status: %+v", n.Status)
	}
}

func TestTakenNamesAndAddressesAreLeftOut(t *testing.T) {
	taken := Template{}.New("n-2", netip.MustParseAddr("172.16.0.1"), "v1.2.3", time.Now())
	names, ips, err := free(t.Context(), fake.NewClientset(taken), "n", 2)
	if err != nil {
		t.Fatal(err)
	}
	if names[0] != "n-1" || names[1] != "n-3" {
		t.Errorf("names %v, want n-1 and n-3", names)
	}
	if ips[0].String() != "172.16.0.2" || ips[1].String() != "172.16.0.3" {
		t.Errorf("addresses %v", ips)
	}
}
