// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// gpuRoom returns an empty pool whose new nodes have 8 CPUs, of which a DaemonSet takes one.
func gpuRoom(daemonSets bool) *Room {
	pool := &tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	pool.Spec.NodeTemplate = &tidekeeperv1.NodeTemplate{Allocatable: map[corev1.ResourceName]resource.Quantity{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110"),
	}}
	room, _ := NewRoom([]*tidekeeperv1.NodePool{pool}, nil, nil)
	if daemonSets {
		set := &appsv1.DaemonSet{}
		set.Spec.Template.Spec = PodOf(corev1.ResourceList{"cpu": resource.MustParse("1")}).Spec
		room.DaemonSets = []*appsv1.DaemonSet{set}
	}
	return room
}

func TestFitOnNewNodes(t *testing.T) {
	twoCPU := PodOf(corev1.ResourceList{"cpu": resource.MustParse("2")})
	alone := twoCPU.DeepCopy()
	alone.Labels = map[string]string{"app": "web"}
	alone.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: alone.Labels}, TopologyKey: corev1.LabelHostname},
	}}}
	for _, tt := range []struct {
		name           string
		room           *Room
		pod            *corev1.Pod
		wanted         int64
		copies, needed string
	}{
		{"besides a DaemonSet", gpuRoom(true), twoCPU, 0, "3", "-"},
		{"thirty copies", gpuRoom(true), twoCPU, 30, "3", "10"},
		{"one more", gpuRoom(true), twoCPU, 31, "3", "11"},
		{"DaemonSets are not known", gpuRoom(false), twoCPU, 30, "at most 4 (because of: DaemonSets of new nodes)", "at least 8"},
		{"one for each node", gpuRoom(true), alone, 5, "1", "5"},
		{"too large", gpuRoom(true), PodOf(corev1.ResourceList{"cpu": resource.MustParse("9")}), 1, "0: larger than the node: cpu (1)", "not with 1000"},
		{"too many", gpuRoom(true), twoCPU, 3001, "3", "not with 1000"},
	} {
		fit := tt.room.Fit(tt.pod, true, tt.wanted)[0].NewNode
		if fit.CopiesText() != tt.copies || fit.NeededText() != tt.needed {
			t.Errorf("%s: %s copies on a new node, %s new nodes; want %s, %s", tt.name, fit.CopiesText(), fit.NeededText(), tt.copies, tt.needed)
		}
	}
	var none *NewNodeFit
	if none.CopiesText() != "-" || none.NeededText() != "-" {
		t.Error("a pool without a template")
	}
}

func TestAddNewNodes(t *testing.T) {
	room := gpuRoom(true)
	if err := room.AddNewNodes("gpu", 2); err != nil {
		t.Fatal(err)
	}
	if fit := room.Fit(PodOf(corev1.ResourceList{"cpu": resource.MustParse("2")}), true, 0)[0]; fit.Copies != 6 || fit.Members != 2 {
		t.Errorf("%d copies on %d nodes, want 6 on 2", fit.Copies, fit.Members)
	}
	if err := room.AddNewNodes("none", 1); err == nil {
		t.Error("new nodes of a pool that does not exist")
	}
	room.Pools[0].Spec.NodeTemplate = nil
	if err := room.AddNewNodes("gpu", 1); err == nil {
		t.Error("new nodes of a pool without a template")
	}
}
