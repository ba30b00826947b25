// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spread adds zones to the nodes of full, and to each pod a topology spread constraint over zones and
// an anti-affinity to pods of its workload on the same node, as charts do that are made to be highly
// available.
func spread(nodes []corev1.Node, pods []corev1.Pod) {
	for i := range nodes {
		nodes[i].Labels = map[string]string{corev1.LabelHostname: nodes[i].Name, corev1.LabelTopologyZone: fmt.Sprint("zone-", i%3)}
	}
	for i := range pods {
		spreadPod(&pods[i], pods[i].OwnerReferences[0].Name)
	}
}

func spreadPod(p *corev1.Pod, workload string) {
	p.Namespace, p.Labels = "default", map[string]string{"app": workload}
	selector := &metav1.LabelSelector{MatchLabels: p.Labels}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
	}}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: selector, TopologyKey: corev1.LabelHostname,
	}}}}
}

// BenchmarkFitSpread is like BenchmarkFit for pods that are spread over zones and nodes.
func BenchmarkFitSpread(b *testing.B) {
	for _, count := range worlds {
		list, pods, names := full(count/30, true)
		spread(list, pods)
		c := newCluster(list, pods)
		shape := aPod("new", "", "", "", "cpu", "3", "memory", "4Gi")
		spreadPod(&shape, "w7-7d9f")
		b.Run(fmt.Sprintf("pods=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Members(names).Fit(&shape)
			}
		})
	}
}

// BenchmarkLossSpread is like BenchmarkLossOfEach, with room, for pods that are spread over zones and
// nodes.
func BenchmarkLossSpread(b *testing.B) {
	for _, count := range worlds {
		list, pods, names := full(count/30, true)
		spread(list, pods)
		c := newCluster(list, pods)
		b.Run(fmt.Sprintf("pods=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, name := range names {
					c.Lose([]string{name}, nil)
				}
			}
		})
	}
}

// BenchmarkClusterSpread is like BenchmarkCluster for pods that are spread over zones and nodes. It
// includes the first answer, which indexes the pods.
func BenchmarkClusterSpread(b *testing.B) {
	for _, count := range worlds {
		list, pods, names := full(count/30, true)
		spread(list, pods)
		b.Run(fmt.Sprintf("pods=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newCluster(list, pods).Lose(names[:1], nil)
			}
		})
	}
}
