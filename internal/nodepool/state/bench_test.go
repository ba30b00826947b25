// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
	"tidekeeper.dev/tidekeeper/internal/test/cost"
)

// crowd is a model with a given number of pods, thirty per node, and with a single pool that
// selects all nodes. pods holds additional pods, which the method event creates and deletes
// individually.
type crowd struct {
	cluster *Cluster
	pods    []*corev1.Pod
	next    int
}

func newCrowd(pods int) *crowd {
	c := &crowd{cluster: NewCluster()}
	c.cluster.SetPool(objects.Pool("all").MatchLabels("os", "linux").Obj())
	nodes := max(1, pods/30)
	shared := map[string][]corev1.Container{} // pods with equal containers share them, as in the manager's cache
	pod := func(i int) *corev1.Pod {
		p := objects.Pod(fmt.Sprintf("pod-%d", i)).On(fmt.Sprintf("node-%d", i%nodes)).
			Container(fmt.Sprintf("%dm", 50+i%7), "64Mi").Container("10m", "64Mi").Obj()
		p.UID = types.UID(p.Name)
		cpu := p.Spec.Containers[0].Resources.Requests.Cpu().String()
		if shared[cpu] == nil {
			shared[cpu] = p.Spec.Containers
		}
		p.Spec.Containers = shared[cpu]
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
		return p
	}
	for i := range nodes {
		c.cluster.SetNode(objects.Node(fmt.Sprintf("node-%d", i)).Label("os", "linux").Ready(corev1.ConditionTrue).
			Allocatable(corev1.ResourceCPU, "16").Allocatable(corev1.ResourceMemory, "64Gi").Allocatable(corev1.ResourcePods, "250").Obj())
	}
	for i := range pods {
		c.cluster.SetPod(pod(i))
	}
	for i := range 1_000 {
		c.pods = append(c.pods, pod(pods+i*nodes/1_000))
	}
	return c
}

// event creates an additional pod and deletes it again.
func (c *crowd) event() {
	pod := c.pods[c.next%len(c.pods)]
	c.next++
	c.cluster.SetPod(pod)
	c.cluster.DeletePod(pod.UID)
}

// BenchmarkPodEvent measures the creation and deletion of a pod. The cost should not depend on the
// number of existing pods.
func BenchmarkPodEvent(b *testing.B) {
	for _, pods := range []int{3_000, 30_000, 150_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			c := newCrowd(pods)
			b.ReportAllocs()
			for b.Loop() {
				c.event()
			}
		})
	}
}

// BenchmarkHeadroom measures the evaluation of a pool's headroom, which copies the state of the
// cluster and simulates the loss of each node.
func BenchmarkHeadroom(b *testing.B) {
	for _, pods := range []int{3_000, 30_000, 150_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			c := newCrowd(pods)
			pool := objects.Pool("all").MatchLabels("os", "linux").Obj()
			pool.Spec.Headroom = &tidekeeperv1.Headroom{Nodes: 1}
			c.cluster.SetPool(pool)
			b.ReportAllocs()
			for b.Loop() {
				asks, cluster, _ := c.cluster.HeadroomAsks(0)
				cluster.Headroom(asks[0].Members, asks[0].Headroom)
			}
		})
	}
}

// BenchmarkHeadroomAsks measures the part of a headroom evaluation that runs under the model's
// lock.
func BenchmarkHeadroomAsks(b *testing.B) {
	c := newCrowd(150_000)
	pool := objects.Pool("all").MatchLabels("os", "linux").Obj()
	pool.Spec.Headroom = &tidekeeperv1.Headroom{Nodes: 1}
	c.cluster.SetPool(pool)
	for b.Loop() {
		c.cluster.HeadroomAsks(0)
	}
}

// BenchmarkEditOfPool measures a change of a label in the spec of a pool whose nodes all have its
// labels and a taint: the new plans of all nodes.
func BenchmarkEditOfPool(b *testing.B) {
	for _, nodes := range []int{100, 1_000, 5_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			cluster := NewCluster()
			version := func(generation int64) *tidekeeperv1.NodePool {
				pool := objects.Pool("all").MatchLabels("os", "linux").Labels("tier", fmt.Sprint(generation), "team", "a").
					Taint("dedicated", "a", corev1.TaintEffectNoSchedule).
					Managing(setting.LabelKey("tier"), setting.LabelKey("team"), setting.TaintKey("dedicated", corev1.TaintEffectNoSchedule)).Obj()
				pool.Generation = generation
				return pool
			}
			cluster.SetPool(version(0))
			for i := range nodes {
				cluster.SetNode(objects.Node(fmt.Sprintf("node-%d", i)).Label("os", "linux").LabelOf("all", "tier", "0").LabelOf("all", "team", "a").
					TaintOf("all", "dedicated", "a", corev1.TaintEffectNoSchedule).Ready(corev1.ConditionTrue).Obj())
			}
			b.ReportAllocs()
			for generation := int64(1); b.Loop(); generation++ {
				dirty := cluster.SetPool(version(generation))
				queued := len(dirty.Nodes)
				for dirty.Unplanned {
					dirty = cluster.Planning.More()
					queued += len(dirty.Nodes)
				}
				if queued != nodes {
					b.Fatalf("%d nodes need a write, want %d", queued, nodes)
				}
			}
		})
	}
}

func TestPodEventCostsTheSameInALargeWorld(t *testing.T) {
	small, large := newCrowd(300), newCrowd(30_000)
	// The tolerance allows for the occasional allocation when a map grows.
	costsTheSame(t, "a pod event", small.event, large.event, 1)
}

// TestEvictionsCostTheSameInALargeWorld checks that the cost of counting the pods that a pool's
// NoExecute taints would evict does not depend on the number of unrelated nodes and pods.
func TestEvictionsCostTheSameInALargeWorld(t *testing.T) {
	evictions := func(pods int) func() {
		c := newCrowd(pods)
		waiting := objects.Pool("few").MatchLabels("few", "yes").Taint("few", "", corev1.TaintEffectNoExecute).Obj()
		c.cluster.SetPool(waiting)
		for i := range 3 {
			c.cluster.SetNode(objects.Node(fmt.Sprintf("node-%d", i)).Label("os", "linux").Label("few", "yes").Ready(corev1.ConditionTrue).
				Allocatable(corev1.ResourceCPU, "16").Allocatable(corev1.ResourceMemory, "64Gi").Allocatable(corev1.ResourcePods, "250").Obj())
		}
		return func() {
			list, members, _ := c.cluster.Evictions("few", time.Minute, time.Time{})
			affected := 0
			for _, e := range list {
				affected += e.AffectedPods
			}
			if members != 3 || affected != 90 {
				t.Fatalf("%d members wait, with %d pods, want 3 with 30 each", members, affected)
			}
		}
	}
	costsTheSame(t, "a look at what a NoExecute taint evicts", evictions(300), evictions(30_000), 1)
}

// costsTheSame fails the test if an operation on a large model needs many more allocations or much
// more time than on a small model. The large model has a hundred times as many pods.
func costsTheSame(t *testing.T, what string, small, large func(), tolerance float64) {
	t.Helper()
	few, many := testing.AllocsPerRun(1_000, small), testing.AllocsPerRun(1_000, large)
	if many > few+tolerance {
		t.Errorf("%s takes %.0f allocations in the small world and %.0f in the large one, want no more", what, few, many)
	}
	cost.Same(t, what, small, large)
}
