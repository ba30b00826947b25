// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestRoomEqualsTheCount checks that, after any changes to nodes and pods, the model's running
// room equals the room that the kubectl plugin computes. Most nodes stay usable, and
// each change affects a single property.
func TestRoomEqualsTheCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewCluster()
		w := &truth{map[string]*tidekeeperv1.NodePool{}, map[string]*corev1.Node{}, map[types.UID]*corev1.Pod{}}
		setPool := func(name string, taints ...string) {
			p := objects.Pool(name)
			for _, key := range taints {
				p.Taint(key, "", corev1.TaintEffectNoSchedule)
			}
			w.pools[name] = p.Obj()
			if old := f.graph.pools[name]; old != nil {
				w.pools[name].Generation = old.object.Generation + 1
			}
			f.SetPool(w.pools[name])
		}
		setPool("all")
		setPool("some")
		for i := range 6 {
			n := objects.Node(fmt.Sprint("n", i)).Role("all").Ready(corev1.ConditionTrue).Allocatable(corev1.ResourcePods, "4")
			if i%2 == 0 {
				n.Role("some")
			}
			n.Allocatable(corev1.ResourceCPU, fmt.Sprint(4+i%3)).Allocatable(corev1.ResourceMemory, fmt.Sprint(8-i%2, "Gi"))
			w.nodes[fmt.Sprint("n", i)] = n.Obj()
			f.SetNode(n.Obj())
		}
		nodeNames := rapid.SampledFrom([]string{"n0", "n1", "n2", "n3", "n4", "n5"})
		// change modifies a random node.
		change := func(t *rapid.T, how func(*corev1.Node)) {
			node := w.nodes[nodeNames.Draw(t, "node")].DeepCopy()
			how(node)
			w.nodes[node.Name] = node
			f.SetNode(node)
		}
		seldom := func(t *rapid.T) bool { return rapid.IntRange(0, 4).Draw(t, "seldom") == 0 }
		t.Repeat(map[string]func(*rapid.T){
			"pod": func(t *rapid.T) {
				pod := objects.Pod(fmt.Sprint("p", rapid.IntRange(0, 11).Draw(t, "pod"))).On(nodeNames.Draw(t, "on")).
					Requests(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "cpu")), fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "memory"), "Gi")).Obj()
				w.pods[pod.UID] = pod
				f.SetPod(pod)
			},
			"pod gone": func(t *rapid.T) {
				uid := types.UID(fmt.Sprint("pod-p", rapid.IntRange(0, 11).Draw(t, "pod")))
				delete(w.pods, uid)
				f.DeletePod(uid)
			},
			"cordon": func(t *rapid.T) { change(t, func(n *corev1.Node) { n.Spec.Unschedulable = seldom(t) }) },
			"ready": func(t *rapid.T) {
				change(t, func(n *corev1.Node) {
					n.Status.Conditions[0].Status = corev1.ConditionTrue
					if seldom(t) {
						n.Status.Conditions[0].Status = corev1.ConditionUnknown
					}
				})
			},
			"deletion": func(t *rapid.T) {
				change(t, func(n *corev1.Node) {
					n.DeletionTimestamp = nil
					if seldom(t) {
						n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
					}
				})
			},
			"taint": func(t *rapid.T) {
				change(t, func(n *corev1.Node) {
					n.Spec.Taints = nil
					if seldom(t) {
						n.Spec.Taints = []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}}
					}
				})
			},
			"allocatable": func(t *rapid.T) {
				change(t, func(n *corev1.Node) {
					n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "cpu")))
					delete(n.Status.Allocatable, "example.com/x")
					if rapid.Bool().Draw(t, "offers x") {
						n.Status.Allocatable["example.com/x"] = resource.MustParse(fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "x")))
					}
				})
			},
			"membership": func(t *rapid.T) {
				change(t, func(n *corev1.Node) {
					delete(n.Labels, tidekeeperv1.RoleLabelPrefix+"some")
					if rapid.Bool().Draw(t, "member") {
						n.Labels[tidekeeperv1.RoleLabelPrefix+"some"] = ""
					}
				})
			},
			"node again": func(t *rapid.T) {
				name := nodeNames.Draw(t, "node")
				f.DeleteNode(name)
				f.SetNode(w.nodes[name])
			},
			"own taint": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "has it") {
					setPool("some", "own")
				} else {
					setPool("some")
				}
			},
			"": func(t *rapid.T) { checkRoom(t, f, w) },
		})
	})
}

// checkRoom compares the model's running room with the room that the kubectl plugin
// computes from the current objects.
func checkRoom(t *rapid.T, f *Cluster, w *truth) {
	cluster := capacity.New(slices.Collect(maps.Values(w.nodes)), slices.Collect(maps.Values(w.pods)))
	for name, p := range w.pools {
		v, _ := f.Pool(name)
		want := cluster.Members(sets.List(f.graph.pools[name].members)).Room(plan.Taints(p))
		got := capacity.Room{
			Nodes: v.Nodes, UsableNodes: v.UsableNodes, Allocatable: want.Allocatable, Requested: want.Requested,
			Usable: v.Usable, Free: v.Free, Lost: v.Lost, DaemonSets: want.DaemonSets, EmptyNode: want.EmptyNode, LargestFits: v.LargestFits,
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the room of pool %s (+) differs from the count (-):\n%s", name, diff)
		}
	}
}
