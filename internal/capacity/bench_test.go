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

// worlds are the numbers of pods that are measured, thirty on each node.
var worlds = []int{3_000, 30_000, 150_000}

// BenchmarkCluster measures the time until questions can be asked.
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

// BenchmarkLossOfEach measures the loss of each node, one after the other, with and without
// room for the pods.
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

// BenchmarkFit measures how many copies of a pod fit.
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
