// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// TestNewNode checks the labels and taints of a node that a template describes.
func TestNewNode(t *testing.T) {
	template := &tidekeeperv1.NodeTemplate{
		Allocatable: map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("4")},
		Labels:      map[string]tidekeeperv1.LabelValue{"zone": "a"},
		Taints:      []tidekeeperv1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}, {Key: "pool", Value: "old", Effect: corev1.TaintEffectNoExecute}},
	}
	selecting := func(key, value string) *tidekeeperv1.NodeSelector {
		return &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{key: tidekeeperv1.LabelValue(value)}}
	}
	for _, tt := range []struct {
		name   string
		spec   tidekeeperv1.NodePoolSpec
		labels map[string]string
		err    error
	}{
		{"the label of its role", tidekeeperv1.NodePoolSpec{}, map[string]string{"zone": "a", "node-role.kubernetes.io/gpu": ""}, nil},
		{"the pool's labels", tidekeeperv1.NodePoolSpec{Labels: map[string]tidekeeperv1.LabelValue{"disk": "ssd"}}, map[string]string{"zone": "a", "disk": "ssd", "node-role.kubernetes.io/gpu": ""}, nil},
		{"the labels of the selector", tidekeeperv1.NodePoolSpec{Selector: selecting("team", "x")}, map[string]string{"zone": "a", "team": "x"}, nil},
		{"an expression that it meets", tidekeeperv1.NodePoolSpec{Selector: &tidekeeperv1.NodeSelector{
			MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []tidekeeperv1.LabelValue{"a", "b"}}},
		}}, map[string]string{"zone": "a"}, nil},
		{"an expression that it does not meet", tidekeeperv1.NodePoolSpec{Selector: &tidekeeperv1.NodeSelector{
			MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []tidekeeperv1.LabelValue{"b"}}},
		}}, nil, ErrNotSelected},
		// The pool adds its labels to members only, so that they do not make a node a member.
		{"an expression that only the pool's labels meet", tidekeeperv1.NodePoolSpec{
			Labels: map[string]tidekeeperv1.LabelValue{"disk": "ssd"},
			Selector: &tidekeeperv1.NodeSelector{
				MatchExpressions: []tidekeeperv1.NodeSelectorRequirement{{Key: "disk", Operator: metav1.LabelSelectorOpExists}},
			},
		}, nil, ErrNotSelected},
	} {
		tt.spec.NodeTemplate = template
		tt.spec.Taints = []tidekeeperv1.Taint{{Key: "pool", Value: "gpu", Effect: corev1.TaintEffectNoExecute}}
		n, err := NewNode(&tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: tt.spec}, "new")
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
		if err != nil || tt.err != nil {
			continue
		}
		tt.labels[corev1.LabelHostname] = "new"
		if diff := cmp.Diff(tt.labels, n.Labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff([]corev1.Taint{{Key: "own", Effect: "NoSchedule"}, {Key: "pool", Value: "gpu", Effect: "NoExecute"}}, n.Spec.Taints); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if n, err := NewNode(&tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, "new"); n != nil || err != nil {
		t.Errorf("without a template: %v, %v", n, err)
	}
}
