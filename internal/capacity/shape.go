// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"tidekeeper.dev/tidekeeper/internal/kube/nodes"
)

// Shape has the constraints of a pod that the scheduler evaluates, except for its requests.
type Shape struct {
	spec *corev1.PodSpec
	// required is the node affinity and node selector, nil if the pod has neither.
	required *nodeaffinity.RequiredNodeAffinity
	// Unevaluated lists the constraints that the scheduler evaluates and this package does not.
	Unevaluated []string
}

// ShapeOf returns the shape of a pod.
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
	add(affinity != nil && affinity.PodAffinity != nil && len(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0, "affinity to other pods")
	add(len(antiAffinityOf(pod)) > 0, ownAntiAffinity)
	add(slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}), "topology spread constraints")
	add(slices.ContainsFunc(pod.Spec.Volumes, attached), "persistent volumes")
	add(len(pod.Spec.ResourceClaims) > 0, "resource claims")
	add(usesHostPorts(&pod.Spec), "host ports")
	add(len(pod.Spec.SchedulingGates) > 0, "scheduling gates")
	add(pod.Spec.SchedulingGroup != nil, "pod groups")
	return s
}

// attached reports whether a volume matters to the scheduler: a PersistentVolumeClaim, or a disk that the pod names directly.
func attached(v corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
		v.AzureDisk != nil || v.Cinder != nil || v.VsphereVolume != nil || v.PortworxVolume != nil || v.ISCSI != nil || v.RBD != nil
}

// usesHostPorts reports whether a pod uses ports of its node. With hostNetwork every port is a host port,
// even before the API server has defaulted hostPort.
func usesHostPorts(spec *corev1.PodSpec) bool {
	uses := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort > 0 || spec.HostNetwork })
	}
	return slices.ContainsFunc(spec.Containers, uses) || slices.ContainsFunc(spec.InitContainers, uses)
}

// Reasons for which a node takes no pod of a shape, however much is free on it.
const (
	refusedByLabels = "node selector or affinity"
	refusedByCordon = "cordoned"
)

// refusals returns the reasons for which the scheduler places no pod of the shape on the node, however much
// is free there.
func (s *Shape) refusals(n *corev1.Node) (reasons []string) {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && nodes.Blocks(&cordon, s.spec.Tolerations) {
		reasons = append(reasons, refusedByCordon)
	}
	for i := range n.Spec.Taints {
		// The taint of a cordoned node would repeat that reason.
		if t := &n.Spec.Taints[i]; nodes.Blocks(t, s.spec.Tolerations) && (t.Key != cordon.Key || !n.Spec.Unschedulable) {
			reasons = append(reasons, "taint "+t.ToString())
		}
	}
	if s.required != nil {
		// An affinity that cannot be parsed matches no node, as for the scheduler.
		if fits, err := s.required.Match(n); err != nil || !fits {
			reasons = append(reasons, refusedByLabels)
		}
	}
	return reasons
}
