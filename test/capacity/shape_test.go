// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// requests returns random resource requests for a container.
func (w *world) requests() corev1.ResourceList {
	requests := list("cpu", oneOf(w, "", "50m", "250m", "400m", "900m"), "memory", oneOf(w, "", "64Mi", "300Mi", "700M"))
	if w.chance(8) {
		requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	if w.chance(8) {
		requests[gpu] = resource.MustParse("1")
	}
	return requests
}

// shape returns a random pod spec that selects the world's nodes.
func (w *world) shape() corev1.PodSpec {
	s := corev1.PodSpec{
		NodeSelector: map[string]string{worldLabel: w.name}, Containers: []corev1.Container{container("app", w.requests())},
		Tolerations: w.tolerations(), Affinity: w.affinity(),
	}
	if w.chance(20) {
		s.Containers = append(s.Containers, container("second", w.requests()))
	}
	if w.chance(20) {
		s.InitContainers = append(s.InitContainers, container("init", w.requests()))
	}
	if w.chance(20) {
		sidecar := container("sidecar", list("cpu", "100m"))
		sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		s.InitContainers = append(s.InitContainers, sidecar)
	}
	if w.chance(10) {
		s.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "1100m", "memory", "1500M")}
	}
	if w.chance(12) {
		s.NodeSelector["disk"] = oneOf(w, "ssd", "hdd")
	}
	return s
}

func (w *world) tolerations() []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, t := range w.pool.Spec.Taints {
		if w.chance(90) {
			tolerations = append(tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: string(t.Value), Effect: t.Effect})
		}
	}
	for _, t := range taints {
		switch w.IntN(6) {
		case 0:
			tolerations = append(tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpExists})
		case 1:
			tolerations = append(tolerations, corev1.Toleration{Key: t.Key, Value: t.Value, Effect: t.Effect})
		case 2:
			tolerations = append(tolerations, corev1.Toleration{Key: t.Key, Value: "another", Effect: t.Effect})
		}
	}
	if w.chance(10) {
		tolerations = append(tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	}
	return tolerations
}

// affinity returns a random required node affinity, or nil.
func (w *world) affinity() *corev1.Affinity {
	if w.chance(65) {
		return nil
	}
	required := &corev1.NodeSelector{}
	for range 1 + w.IntN(2) {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, w.term())
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
}

func (w *world) term() corev1.NodeSelectorTerm {
	expression := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	switch w.IntN(8) {
	case 0:
		return expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, w.name+"-a")
	case 1:
		return expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, w.name+"-a", "elsewhere")
	case 2:
		return expression("disk", corev1.NodeSelectorOpExists)
	case 3:
		return expression("disk", corev1.NodeSelectorOpDoesNotExist)
	case 4:
		return expression("rank", corev1.NodeSelectorOpGt, "4")
	case 5:
		return expression("rank", corev1.NodeSelectorOpLt, "6")
	case 6:
		return expression("disk", corev1.NodeSelectorOpGt, "1") // The label's value is not a number on any node.
	default:
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: oneOf(w, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{oneOf(w, w.nodes...).Name}}}}
	}
}

// defaults creates a LimitRange, which changes the world's pods at their creation, or a
// RuntimeClass, which the function sets in the pod spec.
func (w *world) defaults(t *testing.T, s *corev1.PodSpec) {
	t.Helper()
	if w.chance(30) {
		cluster.Apply(t, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: w.name},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, DefaultRequest: list("cpu", "350m", "memory", "200Mi"), Default: list("cpu", "8", "memory", "8Gi"),
			}}},
		})
	}
	if w.chance(30) {
		class := &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: w.name}, Handler: "runc", Overhead: &nodev1.Overhead{PodFixed: list("cpu", "120m", "memory", "90Mi")},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{worldLabel: w.name}, Tolerations: []corev1.Toleration{{Key: taints[0].Key, Operator: corev1.TolerationOpExists}}},
		}
		cluster.Apply(t, class)
		s.RuntimeClassName = new(w.name)
	}
}

// copies creates `count` more copies of a pod and waits until the scheduler has tried to place each
// of them. It returns the total number of copies on nodes, and the reason why one of the other
// copies is unschedulable.
func (w *world) copies(t *testing.T, spec corev1.PodSpec, count int64) (scheduled int64, reason string) {
	t.Helper()
	for range count {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("copy-", w.pods), Namespace: w.name, Labels: map[string]string{"app": "copy"}}, Spec: *spec.DeepCopy()}
		if err := cluster.Create(t.Context(), pod); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		w.pods++
	}
	framework.Eventually(t, "the scheduler has tried each copy", func() error {
		pods := &corev1.PodList{}
		if err := cluster.List(t.Context(), pods, client.InNamespace(w.name), client.MatchingLabels{"app": "copy"}); err != nil {
			return err
		}
		scheduled, reason = 0, ""
		for i := range pods.Items {
			p := &pods.Items[i]
			refused := unschedulable(p)
			switch {
			case p.Spec.NodeName != "":
				scheduled++
			case refused != "":
				reason = refused
			default:
				return fmt.Errorf("%s has not been tried", p.Name)
			}
		}
		return nil
	})
	return scheduled, reason
}

// unschedulable returns the scheduler's message if it has found no node for a pod, or "".
func unschedulable(p *corev1.Pod) string {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && (c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulingGated)
	})
	if i < 0 || p.Spec.NodeName != "" {
		return ""
	}
	return p.Status.Conditions[i].Reason + ": " + p.Status.Conditions[i].Message
}
