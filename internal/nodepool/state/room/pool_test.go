// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
	"tidekeeper.dev/tidekeeper/internal/resources"
)

// TestPoolEqualsANewOne checks that, after any changes of nodes and taints, the report equals the
// report of a new pool with the same nodes, and that removed nodes do not remain in any heap.
func TestPoolEqualsANewOne(t *testing.T) {
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, "example.com/gpu"}
	rapid.Check(t, func(t *rapid.T) {
		p := &Pool{}
		nodes, members := map[string]*Node{}, map[string]*Node{}
		var taints []corev1.Taint
		recount := func(t *rapid.T, n *Node) Amounts {
			var allocatable []resources.Amount
			requested := resources.Sums{}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, "example.com/gpu", corev1.ResourceMemory, corev1.ResourcePods} {
				if value := rapid.Int64Range(0, 4).Draw(t, "allocatable"); name != "example.com/gpu" || value > 0 {
					allocatable = append(allocatable, resources.Amount{Resource: name, Value: value})
					requested.AddN(resources.Amount{Resource: name, Value: rapid.Int64Range(0, 5).Draw(t, "requested")}, 1)
				}
			}
			return n.Recount(allocatable, requested)
		}
		for i := range 4 {
			name := fmt.Sprint("n", i)
			nodes[name] = &Node{Name: name, Object: objects.Node(name).Ready(corev1.ConditionTrue).Obj()}
			recount(t, nodes[name])
		}
		pick := rapid.SampledFrom([]string{"n0", "n1", "n2", "n3"})
		t.Repeat(map[string]func(*rapid.T){
			"join or leave": func(t *rapid.T) {
				name := pick.Draw(t, "node")
				if members[name] == nil {
					members[name] = nodes[name]
					p.Add(nodes[name])
				} else {
					delete(members, name)
					p.Remove(nodes[name])
				}
			},
			"recount": func(t *rapid.T) {
				n := nodes[pick.Draw(t, "node")]
				if before := recount(t, n); members[n.Name] != nil {
					p.Update(n, before)
				}
			},
			"cordon": func(t *rapid.T) {
				n := nodes[pick.Draw(t, "node")]
				n.Object = n.Object.DeepCopy()
				n.Object.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
				n.Object.Spec.Taints = nil
				if rapid.Bool().Draw(t, "tainted") {
					n.Object.Spec.Taints = []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}}
				}
				if members[n.Name] != nil {
					p.Update(n, n.Amounts)
				}
			},
			"taints": func(t *rapid.T) {
				taints = nil
				if rapid.Bool().Draw(t, "own") {
					taints = []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}}
				}
				p.SetTaints(taints, maps.Values(members))
			},
			"": func(t *rapid.T) {
				again := &Pool{}
				again.SetTaints(taints, func(func(*Node) bool) {})
				for _, n := range members {
					again.Add(n)
				}
				if diff := cmp.Diff(again.Report(names), p.Report(names), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("the running pool (+) differs from a new one (-):\n%s", diff)
				}
				if len(p.causes) > len(members) {
					t.Fatalf("%d of %d nodes have no room", len(p.causes), len(members))
				}
				for _, name := range slices.Sorted(maps.Keys(p.largest)) {
					if h := p.largest[name]; len(h.nodes) == 0 || len(h.nodes) != len(h.index) || len(h.nodes) > len(members) {
						t.Fatalf("the heap of %s has %d nodes and %d places, with %d members", name, len(h.nodes), len(h.index), len(members))
					}
				}
			},
		})
	})
}
