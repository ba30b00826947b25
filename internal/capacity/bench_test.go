// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// full returns the given number of nodes with 30 pods each, the pods, and the names of the nodes.
// The pods belong to 1,000 workloads. If muchRoom is set, about half of the CPU is free; if not,
// hardly any CPU is free.
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

// worlds lists the numbers of pods for which to run the benchmarks, at 30 pods per node.
var worlds = []int{3_000, 30_000, 150_000}

// BenchmarkCluster measures the construction of a Cluster from nodes and pods.
func BenchmarkCluster(b *testing.B) {
	for _, count := range worlds {
		list, pods, _ := full(count/30, true)
		b.Run(fmt.Sprintf("pods=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newCluster(list, pods)
			}
		})
	}
}

// BenchmarkLossOfEach simulates the loss of each node in turn, with and without room for its pods
// on other nodes.
func BenchmarkLossOfEach(b *testing.B) {
	for _, count := range worlds {
		for _, room := range []bool{true, false} {
			list, pods, names := full(count/30, room)
			c := newCluster(list, pods)
			b.Run(fmt.Sprintf("room=%t/pods=%d", room, count), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for _, name := range names {
						c.Lose([]string{name}, nil)
					}
				}
			})
		}
	}
}

// BenchmarkFit measures Members.Fit for all nodes of a cluster.
func BenchmarkFit(b *testing.B) {
	for _, count := range worlds {
		list, pods, names := full(count/30, true)
		c := newCluster(list, pods)
		shape := aPod("new", "", "", "", "cpu", "3", "memory", "4Gi")
		b.Run(fmt.Sprintf("pods=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Members(names).Fit(&shape)
			}
		})
	}
}
