// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package sample

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// karpenterNode is the part of the spec that Karpenter's NodeClaims and the template of its
// NodePools have in common, in the API versions v1beta1 and v1.
type karpenterNode struct {
	Taints       []corev1.Taint `json:"taints"`
	Requirements []struct {
		Key      string                       `json:"key"`
		Operator metav1.LabelSelectorOperator `json:"operator"`
		Values   []string                     `json:"values"`
	} `json:"requirements"`
}

// node returns the labels and taints of the nodes that a Karpenter spec describes, including the
// given labels. A requirement with the operator In and a single value becomes a label, because
// Karpenter puts it on each node.
func (k *karpenterNode) node(labels map[string]string) node {
	n := node{labels: map[string]string{}, taints: append([]corev1.Taint{}, k.Taints...)}
	for _, r := range k.Requirements {
		if r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 1 {
			n.labels[r.Key] = r.Values[0]
		}
	}
	for key, value := range labels {
		n.labels[key] = value
	}
	return n
}

// ofKarpenterPool reads the labels and taints of a Karpenter NodePool. Startup taints are left out,
// because they are removed again. The result has no resource amounts, because Karpenter specifies
// these only in NodeClaims.
func ofKarpenterPool(o *unstructured.Unstructured) (node, error) {
	var pool struct {
		Spec struct {
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Spec karpenterNode `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := decode(o, &pool); err != nil {
		return node{}, err
	}
	n := pool.Spec.Template.Spec.node(pool.Spec.Template.Metadata.Labels)
	n.labels["karpenter.sh/nodepool"] = o.GetName()
	return n, nil
}

// ofNodeClaim reads the resource amounts, labels and taints of a Karpenter NodeClaim, which stands
// for a single node.
func ofNodeClaim(o *unstructured.Unstructured) (node, error) {
	var claim struct {
		Spec   karpenterNode `json:"spec"`
		Status struct {
			Allocatable corev1.ResourceList `json:"allocatable"`
		} `json:"status"`
	}
	if err := decode(o, &claim); err != nil {
		return node{}, err
	}
	n := claim.Spec.node(o.GetLabels())
	n.allocatable = claim.Status.Allocatable
	return n, nil
}
