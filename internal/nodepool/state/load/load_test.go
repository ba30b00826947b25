// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// TestInventedResourcesLeaveNothing checks that requests for resources that no node offers are not
// added up, and that the model keeps nothing about these resources after the pods have been
// deleted.
func TestInventedResourcesLeaveNothing(t *testing.T) {
	n := NewNodes()
	n.Offer(nil, []corev1.ResourceName{corev1.ResourceCPU})
	l, total := n.Of("n"), resources.Sums{}
	l.AddTo(&total)
	for i := range 20 {
		pod := objects.Pod(fmt.Sprint(i)).On("n").Requests("1", "").Obj()
		for r := range 100 {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("x.io/%d-%d", i, r))] = resource.MustParse("1")
		}
		n.SetPod(pod)
	}
	if len(l.requested) != 1 || len(total) != 1 {
		t.Errorf("the node has sums of %d resources and the total of %d; want cpu alone", len(l.requested), len(total))
	}
	for i := range 20 {
		n.DeletePod(types.UID("pod-" + fmt.Sprint(i)))
	}
	if len(n.profiles)+len(n.pods)+len(l.pods)+len(l.requested)+len(total) != 0 {
		t.Errorf("left are %d profiles, %d pods, %d on the node, %d sums, %d in the total", len(n.profiles), len(n.pods), len(l.pods), len(l.requested), len(total))
	}
}

// TestSumsEqualTheCount checks that, after any events, the sums equal a recount of the existing
// pods' requests for offered resources, and that no state of deleted pods and nodes is kept.
func TestSumsEqualTheCount(t *testing.T) {
	names := []corev1.ResourceName{corev1.ResourceCPU, "example.com/a", "example.com/b"}
	nodes := []string{"n0", "n1", "n2"}
	rapid.Check(t, func(t *rapid.T) {
		n := NewNodes()
		pods := map[types.UID]*corev1.Pod{}
		offers := map[string][]corev1.ResourceName{}
		used := map[string]*Load{}
		var total resources.Sums
		members := map[string]bool{}
		name := rapid.SampledFrom(nodes)
		t.Repeat(map[string]func(*rapid.T){
			"pod": func(t *rapid.T) {
				pod := objects.Pod(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "pod")).On(name.Draw(t, "on")).Requests("1", "").Obj()
				for _, resourceName := range names {
					if rapid.Bool().Draw(t, "requests it") {
						pod.Spec.Containers[0].Resources.Requests[resourceName] = resource.MustParse(fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "amount")))
					}
				}
				before := pods[pod.UID]
				pods[pod.UID] = pod
				came, left := n.SetPod(pod)
				if before != nil && before.Spec.NodeName != pod.Spec.NodeName && (came != pod.Spec.NodeName || left != before.Spec.NodeName) {
					t.Fatalf("a pod moved from %s to %s, and %q and %q have changed", before.Spec.NodeName, pod.Spec.NodeName, left, came)
				}
			},
			"pod gone": func(t *rapid.T) {
				uid := types.UID("pod-" + rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "pod"))
				delete(pods, uid)
				n.DeletePod(uid)
			},
			"offer": func(t *rapid.T) {
				node := name.Draw(t, "node")
				now := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[corev1.ResourceName]).Draw(t, "names")
				n.Offer(offers[node], now)
				offers[node] = now
			},
			"node": func(t *rapid.T) {
				node := name.Draw(t, "node")
				used[node] = n.Of(node)
			},
			"node gone": func(t *rapid.T) {
				node := name.Draw(t, "node")
				if members[node] {
					used[node].TakeFrom(&total)
				}
				delete(members, node)
				delete(used, node)
				n.Drop(node)
			},
			"join or leave": func(t *rapid.T) {
				node := name.Draw(t, "node")
				switch {
				case used[node] == nil:
				case members[node]:
					used[node].TakeFrom(&total)
					members[node] = false
				default:
					used[node].AddTo(&total)
					members[node] = true
				}
			},
			"": func(t *rapid.T) {
				offered := map[corev1.ResourceName]int{}
				for _, list := range offers {
					for _, resourceName := range list {
						offered[resourceName]++
					}
				}
				if diff := cmp.Diff(offered, n.offered, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("the resources that nodes offer (-want +got):\n%s", diff)
				}
				var wantTotal resources.Sums
				users := 0
				for _, p := range n.profiles {
					users += p.users
				}
				if users != len(pods) || len(n.pods) != len(pods) {
					t.Fatalf("%d of %d pods are kept, and use %d profiles", len(n.pods), len(pods), users)
				}
				for _, node := range nodes {
					var want resources.Sums
					count := 0
					for _, pod := range pods {
						if pod.Spec.NodeName != node {
							continue
						}
						count++
						for _, a := range resources.Requests(pod) {
							if offered[a.Resource] > 0 {
								want.AddN(a, 1)
							}
						}
					}
					l := n.loads[node]
					if (l != nil) != (count > 0 || used[node] != nil) {
						t.Fatalf("the load of %s with %d pods is kept: %t", node, count, l != nil)
					}
					if l == nil {
						continue
					}
					if diff := cmp.Diff(want, l.Requested(), cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("the load of %s (-want +got):\n%s", node, diff)
					}
					if members[node] {
						wantTotal.AddSums(want)
					}
				}
				if diff := cmp.Diff(wantTotal, total, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("the total (-want +got):\n%s", diff)
				}
			},
		})
	})
}
