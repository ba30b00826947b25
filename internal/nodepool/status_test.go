// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

func TestConditions(t *testing.T) {
	conflict := plan.Conflict{Pool: "a", Owner: "elder", Node: "n1", Key: setting.LabelKey("team")}
	for _, tt := range []struct {
		name     string
		pool     *objects.PoolBuilder
		view     state.PoolSnapshot
		notOwned string
		want     map[string]string // maps a condition type to status/reason
		message  string            // message of the condition "Ready"
	}{
		{
			name:    "all nodes are ready and in sync",
			view:    state.PoolSnapshot{Nodes: 2, Ready: 2},
			want:    map[string]string{"Ready": "True/Healthy", "Conflicted": "False/NoConflict"},
			message: "2 nodes are Ready and match the pool's spec",
		},
		{
			name:    "no node matches",
			pool:    objects.Pool("a").MatchLabels("zone", "1"),
			want:    map[string]string{"Ready": "True/NoNodes", "Conflicted": "False/NoConflict"},
			message: "no node matches the selector zone=1",
		},
		{
			name:    "a node is not ready",
			view:    state.PoolSnapshot{Nodes: 3, Ready: 2},
			want:    map[string]string{"Ready": "True/NodesNotReady", "Conflicted": "False/NoConflict"},
			message: "1 of 3 nodes is not Ready",
		},
		{
			name:    "nodes do not match the spec yet",
			view:    state.PoolSnapshot{Nodes: 3, Ready: 2, Outdated: 2},
			want:    map[string]string{"Ready": "False/OutOfSync", "Reconciling": "True/OutOfSync", "Conflicted": "False/NoConflict"},
			message: "2 of 3 nodes do not match the pool's spec yet",
		},
		{
			name:    "nodes wait for their turn to be emptied",
			view:    state.PoolSnapshot{Nodes: 3, Ready: 3, Outdated: 2, EvictionPending: 1},
			want:    map[string]string{"Ready": "False/OutOfSync", "Reconciling": "True/OutOfSync", "Conflicted": "False/NoConflict"},
			message: "2 of 3 nodes do not match the pool's spec yet; 1 of them waits for a turn to get a NoExecute taint",
		},
		{
			name:    "nodes are being emptied within budgets, and others wait",
			view:    state.PoolSnapshot{Nodes: 5, Ready: 5, Outdated: 4, EvictionPending: 1, Emptying: 3},
			want:    map[string]string{"Ready": "False/OutOfSync", "Reconciling": "True/OutOfSync", "Conflicted": "False/NoConflict"},
			message: "4 of 5 nodes do not match the pool's spec yet; 1 of them waits for a turn to get a NoExecute taint; 3 of them are being emptied within budgets",
		},
		{
			name:    "a freeze holds them back",
			view:    state.PoolSnapshot{Nodes: 5, Ready: 5, Outdated: 2, EvictionPending: 1, Emptying: 1, HeldBackBy: "Freeze sale"},
			want:    map[string]string{"Ready": "False/OutOfSync", "Reconciling": "True/OutOfSync", "Conflicted": "False/NoConflict"},
			message: "2 of 5 nodes do not match the pool's spec yet; 1 of them waits for Freeze sale; 1 of them is being emptied within budgets, held back by Freeze sale",
		},
		{
			name: "a node cannot be emptied",
			view: state.PoolSnapshot{Nodes: 5, Ready: 5, Outdated: 2, Emptying: 2, Blocked: 1, LongestBlocked: &tidekeeperv1.BlockedNode{
				Node: "n1", Pods: 2, Pod: "shop/web-1", Message: "no disruption allowed",
			}},
			want:    map[string]string{"Ready": "False/EvictionBlocked", "Reconciling": "True/EvictionBlocked", "Conflicted": "False/NoConflict"},
			message: "2 of 5 nodes do not match the pool's spec yet; 2 of them are being emptied within budgets; node n1 cannot be emptied within budgets: 2 pods are left, for instance shop/web-1: no disruption allowed",
		},
		{
			name:    "a node cannot be patched for the pool",
			view:    state.PoolSnapshot{Nodes: 3, Ready: 3, Outdated: 1, Refused: 1, RefusedNode: "n", RefusedReason: "no: never"},
			want:    map[string]string{"Ready": "False/NodePatchRefused", "Stalled": "True/NodePatchRefused", "Reconciling": "True/NodePatchRefused", "Conflicted": "False/NoConflict"},
			message: "cannot write node n: no: never",
		},
		{
			name:    "an older pool has a key",
			view:    state.PoolSnapshot{Nodes: 3, Ready: 3, Conflicted: 2, FirstConflict: conflict},
			want:    map[string]string{"Ready": "False/Conflicted", "Stalled": "True/Conflicted", "Conflicted": "True/KeyConflict"},
			message: "2 nodes, for instance node n1: the older pool elder has label team; change one of the pools",
		},
		{
			name:     "the pool does not own the RuntimeClass, which users must fix",
			view:     state.PoolSnapshot{Nodes: 3, Ready: 3, Conflicted: 1, FirstConflict: conflict},
			notOwned: "it is taken",
			want:     map[string]string{"Ready": "False/RuntimeClassConflict", "Stalled": "True/RuntimeClassConflict", "Conflicted": "True/KeyConflict"},
			message:  "it is taken",
		},
		{
			name:    "the selector cannot be used",
			view:    state.PoolSnapshot{Invalid: errors.New("spec.selector is empty")},
			want:    map[string]string{"Ready": "False/InvalidSelector", "Stalled": "True/InvalidSelector", "Conflicted": "False/NoConflict"},
			message: "spec.selector is empty",
		},
		{
			name:     "a deleted pool cleans its nodes, whatever other problems it has",
			pool:     objects.Pool("a").Deleted(),
			view:     state.PoolSnapshot{Nodes: 3, Ready: 1, OwnedNodes: 1, Invalid: errors.New("bad")},
			notOwned: "taken",
			want:     map[string]string{"Ready": "False/Deleting", "Reconciling": "True/Deleting", "Conflicted": "False/NoConflict"},
			message:  "removing the pool's settings from 1 node",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := objects.Pool("a")
			if tt.pool != nil {
				pool = tt.pool
			}
			object := pool.Obj()
			// Outdated conditions must be removed.
			object.Status.Conditions = []metav1.Condition{
				{Type: tidekeeperv1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "Old"},
				{Type: tidekeeperv1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: "Old"},
			}
			status := newStatus(object, &tt.view, tt.notOwned, nil, tidekeeperv1.ManagedKeys{}, objects.Epoch)
			got := map[string]string{}
			for _, c := range status.Conditions {
				got[c.Type] = string(c.Status) + "/" + c.Reason
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if ready := meta.FindStatusCondition(status.Conditions, tidekeeperv1.ConditionReady); ready == nil || ready.Message != tt.message {
				t.Errorf("message of Ready (-want +got):\n%s", cmp.Diff(tt.message, ready.Message))
			}
		})
	}
}

// TestConditionsKeepTheirTime checks that an unchanged condition keeps its transition time. If it
// did not, every new status would differ from the previous status.
func TestConditionsKeepTheirTime(t *testing.T) {
	pool := objects.Pool("a").Obj()
	healthy := &state.PoolSnapshot{Nodes: 1, Ready: 1}
	pool.Status = newStatus(pool, healthy, "", nil, tidekeeperv1.ManagedKeys{}, objects.Epoch)
	later := newStatus(pool, healthy, "", nil, tidekeeperv1.ManagedKeys{}, objects.Epoch.Add(time.Hour))
	if diff := cmp.Diff(pool.Status, later); diff != "" {
		t.Errorf("nothing has happened, but the status differs (-before +after):\n%s", diff)
	}
}

func TestWhenToWrite(t *testing.T) {
	const interval = 5 * time.Second
	base := tidekeeperv1.NodePoolStatus{
		NodeCount: 3, Requested: corev1.ResourceList{"cpu": resource.MustParse("1")},
		Managed: tidekeeperv1.ManagedKeys{Labels: []string{"a", "b"}},
	}
	list := corev1.ResourceList{"cpu": resource.MustParse("3")}
	utilization := func(s *tidekeeperv1.NodePoolStatus) { s.Requested["cpu"] = resource.MustParse("2") }
	for _, tt := range []struct {
		name   string
		change func(*tidekeeperv1.NodePoolStatus)
		ago    time.Duration
		write  bool
		again  time.Duration
	}{
		{name: "nothing has changed", ago: time.Hour},
		{name: "the same amount in another notation", change: func(s *tidekeeperv1.NodePoolStatus) { s.Requested["cpu"] = resource.MustParse("1000m") }, ago: time.Hour},
		{name: "the utilization, long after the last write", change: utilization, ago: time.Hour, write: true},
		{name: "the utilization, soon after the last write", change: utilization, ago: 2 * time.Second, again: 3 * time.Second},
		{name: "membership, soon after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.NodeCount = 4 }, ago: 2 * time.Second, write: true},
		{name: "membership, right after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.NodeCount = 4 }, ago: 100 * time.Millisecond, again: 900 * time.Millisecond},
		{name: "what is free, soon after the last write", change: func(s *tidekeeperv1.NodePoolStatus) {
			s.Free = list
			s.LargestFits = []tidekeeperv1.LargestFit{{Node: "a"}}
		}, ago: 2 * time.Second, again: 3 * time.Second},
		{name: "a node at its limit of pods, soon after the last write", change: func(s *tidekeeperv1.NodePoolStatus) {
			s.Lost = []tidekeeperv1.Lost{{Cause: tidekeeperv1.LostPodLimitReached}}
		}, ago: 2 * time.Second, again: 3 * time.Second},
		{name: "a cordoned node, soon after the last write", change: func(s *tidekeeperv1.NodePoolStatus) {
			s.Lost = []tidekeeperv1.Lost{{Cause: tidekeeperv1.LostCordoned, Nodes: 1, Resources: list}}
		}, ago: 2 * time.Second, write: true},
		{name: "a condition, soon after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.Conditions = []metav1.Condition{{Type: "Ready"}} }, ago: 2 * time.Second, write: true},
		{name: "a key that the nodes wait for, right after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.Managed.Taints = []string{"t:NoSchedule"} }, ago: time.Millisecond, write: true},
		{name: "a key that is no longer managed, right after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.Managed.Labels = []string{"a"} }, ago: time.Millisecond, again: 999 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := *base.DeepCopy()
			if tt.change != nil {
				tt.change(&after)
			}
			write, again := whenToWrite(&base, &after, objects.Epoch, objects.Epoch.Add(tt.ago), interval)
			if write != tt.write || again != tt.again {
				t.Errorf("write %v, again after %v; want %v, %v", write, again, tt.write, tt.again)
			}
		})
	}
}

// TestStatusHasUtilization checks that the status contains the snapshot's resource amounts.
func TestStatusHasUtilization(t *testing.T) {
	f := state.NewCluster()
	f.SetPool(objects.Pool("a").Obj())
	f.SetNode(objects.Node("n1").Role("a").Ready(corev1.ConditionTrue).Capacity("cpu", "4").Capacity("pods", "110").Obj())
	f.SetNode(objects.Node("n2").Role("a").Capacity("cpu", "4").Allocatable("cpu", "3500m").Capacity("pods", "110").Obj())
	f.SetPod(objects.Pod("p").On("n1").Requests("3", "").Obj())
	v, _ := f.Pool("a")
	got := newStatus(v.Pool, &v, "", nil, tidekeeperv1.ManagedKeys{}, objects.Epoch)
	want := tidekeeperv1.NodePoolStatus{
		ObservedGeneration: 1, NodeCount: 2, ReadyNodes: 1,
		Capacity:         corev1.ResourceList{"cpu": resource.MustParse("8"), "pods": resource.MustParse("220")},
		Allocatable:      corev1.ResourceList{"cpu": resource.MustParse("7500m"), "pods": resource.MustParse("220")},
		Requested:        corev1.ResourceList{"cpu": resource.MustParse("3"), "pods": resource.MustParse("1")},
		RequestedPercent: map[corev1.ResourceName]int32{"cpu": 40, "pods": 0},
		UsableNodes:      1,
		Usable:           corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")},
		Free:             corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("109")},
		Lost: []tidekeeperv1.Lost{{
			Cause: tidekeeperv1.LostNotReady, Nodes: 1,
			Resources: corev1.ResourceList{"cpu": resource.MustParse("3500m"), "pods": resource.MustParse("110")},
		}},
		LargestFits: []tidekeeperv1.LargestFit{{Node: "n1", Resources: corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("109")}}},
		Summary:     tidekeeperv1.UtilizationSummary{CPU: "3/7.5 (40%)", Pods: "1/220 (0%)"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tidekeeperv1.NodePoolStatus{}, "Conditions")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestStatusIsBounded checks that the status of a pool with thousands of nodes stays small: it
// contains only sums, losses by cause, and a small number of largest fits.
func TestStatusIsBounded(t *testing.T) {
	f := state.NewCluster()
	f.SetPool(objects.Pool("a").Obj())
	for i := range 3000 {
		n := objects.Node(fmt.Sprintf("node-%05d.eu-central.example.com", i)).Role("a").Capacity(corev1.ResourceCPU, "96").Capacity(corev1.ResourceMemory, "700123456Ki").
			Capacity(corev1.ResourcePods, "110").Capacity(corev1.ResourceEphemeralStorage, "412345678901").
			Capacity(corev1.ResourceName(fmt.Sprintf("devices.example.com/accelerator-%d", i%8)), "8")
		if i%6 > 0 {
			n.Ready(corev1.ConditionTrue)
		}
		if i%6 == 1 {
			n.Taint("other", "", corev1.TaintEffectNoSchedule)
		}
		node := n.Obj()
		node.Spec.Unschedulable = i%6 == 2
		if i%6 == 3 {
			node.DeletionTimestamp = &metav1.Time{Time: objects.Epoch}
		}
		f.SetNode(node)
		f.SetPod(objects.Pod(fmt.Sprint(i)).On(node.Name).Requests(fmt.Sprintf("%dm", 1000+i), fmt.Sprintf("%dKi", 1234567+i)).Obj())
	}
	v, _ := f.Pool("a")
	text, err := json.Marshal(newStatus(v.Pool, &v, "", nil, tidekeeperv1.ManagedKeys{}, objects.Epoch))
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Lost) != 4 || len(v.LargestFits) != 4 {
		t.Errorf("%d causes and %d largest fits; want 4 of each", len(v.Lost), len(v.LargestFits))
	}
	if len(text) > 8<<10 {
		t.Errorf("the status has %d bytes:\n%s", len(text), text)
	}
}
