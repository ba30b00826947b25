// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
)

// Shape holds the constraints that restrict the nodes on which a pod can run, except for resource
// requests and constraints between pods.
type Shape struct {
	spec *corev1.PodSpec
	// required holds the pod's required node affinity and node selector, or nil if the pod has
	// neither.
	required *nodeaffinity.RequiredNodeAffinity
	// Unevaluated lists the pod's constraints that the scheduler evaluates but this package does
	// not.
	Unevaluated []string
}

// ShapeOf returns the constraints of a pod.
func ShapeOf(pod *corev1.Pod) Shape {
	s := Shape{spec: &pod.Spec}
	affinity := pod.Spec.Affinity
	if len(pod.Spec.NodeSelector) > 0 || affinity != nil && affinity.NodeAffinity != nil {
		required := nodeaffinity.GetRequiredNodeAffinity(pod)
		s.required = &required
	}
	add := func(applies bool, what string) {
		if applies {
			s.Unevaluated = append(s.Unevaluated, what)
		}
	}
	add(slices.ContainsFunc(pod.Spec.Volumes, attached), persistentVolumes)
	add(HasResourceClaims(pod), resourceClaims)
	add(len(pod.Spec.SchedulingGates) > 0, "scheduling gates")
	add(pod.Spec.SchedulingGroup != nil, "pod groups")
	return s
}

// attached reports whether a volume can restrict the nodes of its pod. This applies to a
// PersistentVolumeClaim, an ephemeral volume, and a disk that the pod references directly.
func attached(v corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
		v.AzureDisk != nil || v.Cinder != nil || v.VsphereVolume != nil || v.PortworxVolume != nil || v.ISCSI != nil || v.RBD != nil
}

// Reasons why a node accepts no pod of a shape, regardless of the node's free resources.
const (
	refusedByLabels = "node selector or affinity"
	refusedByCordon = "cordoned"
)

// refusals returns the reasons why the scheduler would not place a pod of this shape on the node,
// regardless of the node's free resources.
func (s *Shape) refusals(n *corev1.Node) (reasons []string) {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && nodes.Blocks(&cordon, s.spec.Tolerations) {
		reasons = append(reasons, refusedByCordon)
	}
	for i := range n.Spec.Taints {
		// The taint that marks a cordoned node is skipped, because the cordon was already evaluated
		// above.
		if t := &n.Spec.Taints[i]; nodes.Blocks(t, s.spec.Tolerations) && (t.Key != cordon.Key || !n.Spec.Unschedulable) {
			reasons = append(reasons, "taint "+t.ToString())
		}
	}
	if s.required != nil {
		// As in the scheduler, an invalid affinity matches no node.
		if fits, err := s.required.Match(n); err != nil || !fits {
			reasons = append(reasons, refusedByLabels)
		}
	}
	return reasons
}

// constraintsOf returns a key that is equal for pods with the same tolerations, node selector,
// affinity, topology spread constraints and host ports.
func constraintsOf(spec *corev1.PodSpec) string {
	var key strings.Builder
	for _, t := range spec.Tolerations {
		for _, part := range []string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			key.WriteString(part)
			key.WriteByte(0)
		}
	}
	if len(spec.NodeSelector) > 0 {
		fmt.Fprint(&key, spec.NodeSelector)
	}
	if spec.Affinity != nil {
		writeMessage(&key, spec.Affinity)
	}
	for i := range spec.TopologySpreadConstraints {
		writeMessage(&key, &spec.TopologySpreadConstraints[i])
	}
	if ports := hostPortsOf(spec); len(ports) > 0 {
		fmt.Fprint(&key, ports)
	}
	return key.String()
}

// writeMessage adds a part of a pod's spec to a key, as a protobuf message, which takes a fifth of the
// time of a text.
func writeMessage(key *strings.Builder, part interface{ Marshal() ([]byte, error) }) {
	message, err := part.Marshal()
	if err != nil {
		panic(err) // A part of a pod's spec is always a valid message.
	}
	fmt.Fprint(key, len(message), ":")
	key.Write(message)
}
