// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// full returns a cluster whose nodes have 30 pods each of 1,000 workloads, and the names of the
// nodes. With much room, about half of the CPU is free, otherwise nearly none.
func full(nodes int, muchRoom bool) ([]corev1.Node, []corev1.Pod, []string) {
	const perNode = 30
	cpu := "16"
	if !muchRoom {
		cpu = "8"
	}
	list, pods, names := []corev1.Node{}, []corev1.Pod{}, []string{}
	for i := range nodes {
		n := aNode(fmt.Sprintf("node-%d", i), "cpu", cpu, "memory", "64Gi", "pods", "110")
		list, names = append(list, n), append(names, n.Name)
		for k := range perNode {
			w := (i*perNode + k) % 1000
			pods = append(pods, aPod(fmt.Sprintf("p-%d-%d", i, k), "ReplicaSet", fmt.Sprintf("w%d-7d9f", w), n.Name, "cpu", fmt.Sprint(150+w/5, "m"), "memory", "1Gi"))
		}
	}
	return list, pods, names
}

// BenchmarkLoss measures the loss of each node, one after the other, and of one.
func BenchmarkLoss(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		for _, room := range []bool{true, false} {
			list, pods, names := full(nodes, room)
			b.Run(fmt.Sprintf("nodes=%d/room=%t/new", nodes, room), func(b *testing.B) {
				for b.Loop() {
					newCluster(list, pods)
				}
			})
			c := newCluster(list, pods)
			b.Run(fmt.Sprintf("nodes=%d/room=%t/each", nodes, room), func(b *testing.B) {
				for b.Loop() {
					for _, name := range names {
						c.Lose([]string{name}, nil)
					}
				}
			})
			b.Run(fmt.Sprintf("nodes=%d/room=%t/one", nodes, room), func(b *testing.B) {
				for b.Loop() {
					c.Lose(names[nodes/2:nodes/2+1], nil)
				}
			})
			b.Run(fmt.Sprintf("nodes=%d/room=%t/fit", nodes, room), func(b *testing.B) {
				shape := aPod("new", "", "", "", "cpu", "3", "memory", "4Gi")
				for b.Loop() {
					c.Fit(names, &shape)
				}
			})
		}
	}
}
