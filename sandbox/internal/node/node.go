// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node creates the Node objects of simulated nodes and computes their status, for the
// command that adds nodes and for the simulated kubelets.
package node

import (
	"cmp"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NotReadyAnnotation on a Node makes its simulated kubelet report that the node is not ready, with
// the annotation's value as the message. Until the annotation is removed, the kubelet ignores the
// node's pods.
const NotReadyAnnotation = "sandbox.tidekeeper.dev/not-ready"

// RealLabel marks nodes that have a real kubelet. The simulated kubelets ignore these nodes.
const RealLabel = "sandbox.tidekeeper.dev/real-node"

// RolePrefix is the prefix of node role labels.
const RolePrefix = "node-role.kubernetes.io/"

const (
	labelOSBeta   = "beta.kubernetes.io/os"
	labelArchBeta = "beta.kubernetes.io/arch"
)

// Template holds the properties of new nodes.
type Template struct {
	Labels      map[string]string
	Taints      []corev1.Taint
	Allocatable corev1.ResourceList
	// Devices lists the simulated devices, in the form that [ParseDevices] accepts; "" for none.
	Devices string
}

// DefaultAllocatable returns the allocatable resources of a node whose template does not specify
// them.
func DefaultAllocatable() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("16"),
		corev1.ResourceMemory:           resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
}

// New returns a ready node whose kubelet has the given Kubernetes version, such as v1.36.3.
func (t Template) New(name string, ip netip.Addr, release string, now time.Time) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
				// Kubelets still set these deprecated labels.
				labelOSBeta:   "linux",
				labelArchBeta: "amd64",
			},
		},
		Spec: corev1.NodeSpec{Taints: t.Taints, ProviderID: "sandbox://" + name},
	}
	for k, v := range t.Labels {
		n.Labels[k] = v
	}
	if t.Devices != "" {
		n.Annotations = map[string]string{DevicesAnnotation: t.Devices}
	}
	n.Status.Allocatable = DefaultAllocatable()
	for k, v := range t.Allocatable {
		n.Status.Allocatable[k] = v
	}
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: ip.String()},
		{Type: corev1.NodeHostName, Address: name},
	}
	n.Status = Status(n, release, now)
	return n
}

// Status returns the status that a kubelet of the given Kubernetes version reports for a node. It
// sets fields that are missing in the old status, and keeps the transition times of unchanged
// conditions.
func Status(n *corev1.Node, release string, now time.Time) corev1.NodeStatus {
	s := n.Status.DeepCopy()
	if len(s.Allocatable) == 0 {
		s.Allocatable = s.Capacity.DeepCopy()
	}
	if len(s.Allocatable) == 0 {
		s.Allocatable = DefaultAllocatable()
	}
	if len(s.Capacity) == 0 {
		s.Capacity = s.Allocatable.DeepCopy()
	}
	if len(s.Addresses) == 0 {
		s.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}}
	}
	s.NodeInfo.KubeletVersion = release
	s.NodeInfo.OperatingSystem = cmp.Or(n.Labels[corev1.LabelOSStable], "linux")
	s.NodeInfo.Architecture = cmp.Or(n.Labels[corev1.LabelArchStable], "amd64")
	s.NodeInfo.OSImage = "Tidekeeper sandbox"
	s.NodeInfo.ContainerRuntimeVersion = "sandbox://1"

	setCondition(s, now, corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	setCondition(s, now, corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	setCondition(s, now, corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	if message, told := n.Annotations[NotReadyAnnotation]; told {
		setCondition(s, now, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", cmp.Or(message, "set to not ready"))
	} else {
		setCondition(s, now, corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	}
	return *s
}

func setCondition(s *corev1.NodeStatus, now time.Time, name corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
	c := corev1.NodeCondition{
		Type: name, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
	for i, old := range s.Conditions {
		if old.Type == name {
			if old.Status == status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			s.Conditions[i] = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}

// Ready reports whether the condition Ready of the node is True.
func Ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// HeartbeatEvery is the interval at which a kubelet reports an unchanged node status.
const HeartbeatEvery = 5 * time.Minute

// Heartbeat returns the time of the kubelet's last report on the node, or the zero time if there is
// none.
func Heartbeat(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}

// Schedulable reports whether pods can be scheduled on the node. The node must be ready, and the
// controller manager must have removed the taints of a node that is not ready or unreachable.
func Schedulable(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	return Ready(n)
}

// Reported reports whether a kubelet has reported the node's status and the controller manager has
// not replaced it by Unknown since then.
func Reported(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status != corev1.ConditionUnknown
		}
	}
	return false
}
