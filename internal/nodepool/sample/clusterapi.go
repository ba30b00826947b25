// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// capacityAnnotation is the prefix of the annotations by which the cluster autoscaler's provider
// for Cluster API learns the size of nodes that do not exist yet.
const capacityAnnotation = "capacity.cluster-autoscaler.kubernetes.io/"

// amounts maps the names of annotations, without capacityAnnotation, to the resources whose amounts
// they hold.
var amounts = map[string]corev1.ResourceName{
	"cpu": corev1.ResourceCPU, "memory": corev1.ResourceMemory, "ephemeral-disk": corev1.ResourceEphemeralStorage, "maxPods": corev1.ResourcePods,
}

// defaultMaxPods is the number of pods per node if the annotation maxPods is absent. The cluster
// autoscaler and the kubelet have the same default.
var defaultMaxPods = resource.MustParse("110")

// propagated lists the prefixes of the labels that Cluster API copies from machines to nodes.
var propagated = []string{"node-role.kubernetes.io/", "node-restriction.kubernetes.io/", "node.cluster.x-k8s.io/"}

// ofMachines reads the annotations of a MachineDeployment, MachineSet or MachinePool, which hold
// the capacity of a node. Like the cluster autoscaler, it takes the entire capacity as allocatable.
func ofMachines(o *unstructured.Unstructured) (node, error) {
	n := node{allocatable: corev1.ResourceList{}, labels: map[string]string{}, taints: []corev1.Taint{}}
	annotations := o.GetAnnotations()
	for name, of := range amounts {
		text := annotations[capacityAnnotation+name]
		if text == "" {
			continue
		}
		amount, err := resource.ParseQuantity(text)
		if err != nil {
			return node{}, fmt.Errorf("annotation %s%s: %q is not an amount", capacityAnnotation, name, text)
		}
		n.allocatable[of] = amount
	}
	if len(n.allocatable) == 0 {
		return node{}, fmt.Errorf("it has no annotations %scpu and %smemory", capacityAnnotation, capacityAnnotation)
	}
	if _, set := n.allocatable[corev1.ResourcePods]; !set {
		n.allocatable[corev1.ResourcePods] = defaultMaxPods
	}
	if count := annotations[capacityAnnotation+"gpu-count"]; count != "" {
		amount, err := resource.ParseQuantity(count)
		of := annotations[capacityAnnotation+"gpu-type"]
		if err != nil || of == "" {
			return node{}, fmt.Errorf("annotations %sgpu-count and gpu-type: %q and %q are not an amount and a resource", capacityAnnotation, count, of)
		}
		n.allocatable[corev1.ResourceName(of)] = amount
	}
	labels, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	if err != nil {
		return node{}, err
	}
	for key, value := range labels {
		for _, prefix := range propagated {
			if strings.HasPrefix(key, prefix) {
				n.labels[key] = value
			}
		}
	}
	for _, pair := range list(annotations[capacityAnnotation+"labels"]) {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return node{}, fmt.Errorf("annotation %slabels: %q is not KEY=VALUE", capacityAnnotation, pair)
		}
		n.labels[key] = value
	}
	for _, text := range list(annotations[capacityAnnotation+"taints"]) {
		before, effect, found := strings.Cut(text, ":")
		if !found {
			return node{}, fmt.Errorf("annotation %staints: %q is not KEY=VALUE:EFFECT", capacityAnnotation, text)
		}
		key, value, _ := strings.Cut(before, "=")
		n.taints = append(n.taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return n, nil
}

// list splits the comma-separated value of an annotation, and omits empty parts.
func list(text string) (parts []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
