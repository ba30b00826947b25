// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func TestConditions(t *testing.T) {
	conflict := conflict{pool: "a", owner: "elder", node: "n1", slot: slot{label, "team"}}
	for _, tt := range []struct {
		name    string
		pool    *PoolMaker
		view    view
		foreign string
		want    map[string]string // type: status/reason
		message string            // of Ready
	}{
		{
			name:    "all nodes are ready and right",
			view:    view{nodes: 2, ready: 2},
			want:    map[string]string{"Ready": "True/Healthy", "Conflicted": "False/NoConflict"},
			message: "2 nodes are Ready and up to date",
		},
		{
			name:    "no node matches",
			pool:    MakePool("a").MatchLabels("zone", "1"),
			want:    map[string]string{"Ready": "True/NoNodes", "Conflicted": "False/NoConflict"},
			message: "no node matches the selector zone=1",
		},
		{
			name:    "a node is not ready",
			view:    view{nodes: 3, ready: 2},
			want:    map[string]string{"Ready": "True/NodesNotReady", "Conflicted": "False/NoConflict"},
			message: "1 of 3 nodes are not Ready",
		},
		{
			name:    "nodes are being brought up to date",
			view:    view{nodes: 3, ready: 2, unshaped: 2},
			want:    map[string]string{"Ready": "False/Updating", "Reconciling": "True/Updating", "Conflicted": "False/NoConflict"},
			message: "2 of 3 nodes are to be brought up to date",
		},
		{
			name:    "nodes wait for their turn to be emptied",
			view:    view{nodes: 3, ready: 3, unshaped: 2, heldBack: 1},
			want:    map[string]string{"Ready": "False/Updating", "Reconciling": "True/Updating", "Conflicted": "False/NoConflict"},
			message: "2 of 3 nodes are to be brought up to date, 1 of them wait for their turn with a NoExecute taint",
		},
		{
			name:    "an older pool has a key",
			view:    view{nodes: 3, ready: 3, conflicted: 2, first: conflict},
			want:    map[string]string{"Ready": "False/Conflicted", "Stalled": "True/Conflicted", "Conflicted": "True/KeyTaken"},
			message: "2 nodes, for instance node n1: the older pool elder has label team; change one of the pools",
		},
		{
			name:    "the RuntimeClass belongs to somebody else, which a person must mend",
			view:    view{nodes: 3, ready: 3, conflicted: 1, first: conflict},
			foreign: "it is taken",
			want:    map[string]string{"Ready": "False/RuntimeClassConflict", "Stalled": "True/RuntimeClassConflict", "Conflicted": "True/KeyTaken"},
			message: "it is taken",
		},
		{
			name:    "the selector cannot be used",
			view:    view{invalid: errors.New("spec.selector is empty")},
			want:    map[string]string{"Ready": "False/InvalidSelector", "Stalled": "True/InvalidSelector", "Conflicted": "False/NoConflict"},
			message: "spec.selector is empty",
		},
		{
			name:    "a deleted pool cleans its nodes, whatever else there is",
			pool:    MakePool("a").Deleted(),
			view:    view{nodes: 3, ready: 1, carriers: 1, invalid: errors.New("bad")},
			foreign: "taken",
			want:    map[string]string{"Ready": "False/Deleting", "Reconciling": "True/Deleting", "Conflicted": "False/NoConflict"},
			message: "1 node is still to be cleaned of what the pool put there",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := MakePool("a")
			if tt.pool != nil {
				pool = tt.pool
			}
			object := pool.Obj()
			// What was true before must not stay.
			object.Status.Conditions = []metav1.Condition{
				{Type: ConditionStalled, Status: metav1.ConditionTrue, Reason: "Old"},
				{Type: ConditionReconciling, Status: metav1.ConditionTrue, Reason: "Old"},
			}
			status := newStatus(object, &tt.view, tt.foreign, tidekeeperv1.ManagedKeys{}, poolEpoch)
			got := map[string]string{}
			for _, c := range status.Conditions {
				got[c.Type] = string(c.Status) + "/" + c.Reason
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if ready := meta.FindStatusCondition(status.Conditions, ConditionReady); ready == nil || ready.Message != tt.message {
				t.Errorf("the message of Ready (-want +got):\n%s", cmp.Diff(tt.message, ready.Message))
			}
		})
	}
}

// TestConditionsKeepTheirTime: a condition that stays as it is keeps the time
// at which it became so, else every status would differ from the last.
func TestConditionsKeepTheirTime(t *testing.T) {
	pool := MakePool("a").Obj()
	healthy := &view{nodes: 1, ready: 1}
	pool.Status = newStatus(pool, healthy, "", tidekeeperv1.ManagedKeys{}, poolEpoch)
	later := newStatus(pool, healthy, "", tidekeeperv1.ManagedKeys{}, poolEpoch.Add(time.Hour))
	if diff := cmp.Diff(pool.Status, later); diff != "" {
		t.Errorf("nothing has happened, and the status differs (-before +after):\n%s", diff)
	}
}

func TestManagedKeys(t *testing.T) {
	team, zone, out := slot{label, "team"}, slot{annotation, "zone"}, slot{taint, "out:NoSchedule"}
	pool := MakePool("a").Labels("new", "1").Taint("x", "", corev1.TaintEffectNoExecute).NotVouching().Vouching(team, zone, out).Obj()
	got := managedKeys(pool, func(s slot) bool { return s == out || s == (slot{label, "never vouched for"}) })
	want := tidekeeperv1.ManagedKeys{Labels: []string{"new"}, Taints: []string{"out:NoSchedule", "x:NoExecute"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("managed (-want +got):\n%s", diff)
	}
}

func TestWhenToWrite(t *testing.T) {
	const interval = 5 * time.Second
	base := tidekeeperv1.NodePoolStatus{
		NodeCount: 3, Requested: corev1.ResourceList{"cpu": resource.MustParse("1")},
		Managed: tidekeeperv1.ManagedKeys{Labels: []string{"a", "b"}},
	}
	level := func(s *tidekeeperv1.NodePoolStatus) { s.Requested["cpu"] = resource.MustParse("2") }
	for _, tt := range []struct {
		name   string
		change func(*tidekeeperv1.NodePoolStatus)
		ago    time.Duration
		write  bool
		again  time.Duration
	}{
		{name: "nothing has changed", ago: time.Hour},
		{name: "the same amount in other words", change: func(s *tidekeeperv1.NodePoolStatus) { s.Requested["cpu"] = resource.MustParse("1000m") }, ago: time.Hour},
		{name: "the level, a long time after the last write", change: level, ago: time.Hour, write: true},
		{name: "the level, soon after the last write", change: level, ago: 2 * time.Second, again: 3 * time.Second},
		{name: "membership, soon after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.NodeCount = 4 }, ago: 2 * time.Second, write: true},
		{name: "membership, right after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.NodeCount = 4 }, ago: 100 * time.Millisecond, again: 900 * time.Millisecond},
		{name: "a condition, soon after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.Conditions = []metav1.Condition{{Type: "Ready"}} }, ago: 2 * time.Second, write: true},
		{name: "a key that the nodes wait for, right after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.Managed.Taints = []string{"t:NoSchedule"} }, ago: time.Millisecond, write: true},
		{name: "a key that is done with, right after the last write", change: func(s *tidekeeperv1.NodePoolStatus) { s.Managed.Labels = []string{"a"} }, ago: time.Millisecond, again: 999 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := *base.DeepCopy()
			if tt.change != nil {
				tt.change(&after)
			}
			write, again := whenToWrite(&base, &after, poolEpoch, poolEpoch.Add(tt.ago), interval)
			if write != tt.write || again != tt.again {
				t.Errorf("write %v, again after %v; want %v, %v", write, again, tt.write, tt.again)
			}
		})
	}
}

// TestStatusShowsTheLevel: the numbers of the view are those of the status.
func TestStatusShowsTheLevel(t *testing.T) {
	f := newFleet()
	f.setPool(MakePool("a").Obj())
	f.setNode(MakeNode("n1").Role("a").Ready(corev1.ConditionTrue).Capacity("cpu", "4").Capacity("pods", "110").Obj())
	f.setNode(MakeNode("n2").Role("a").Capacity("cpu", "4").Allocatable("cpu", "3500m").Capacity("pods", "110").Obj())
	f.setPod(MakePod("p").On("n1").Requests("3", "").Obj())
	v, _ := f.view("a")
	got := newStatus(v.pool, &v, "", tidekeeperv1.ManagedKeys{}, poolEpoch)
	want := tidekeeperv1.NodePoolStatus{
		ObservedGeneration: 1, NodeCount: 2, ReadyNodes: 1,
		Capacity:         corev1.ResourceList{"cpu": resource.MustParse("8"), "pods": resource.MustParse("220")},
		Allocatable:      corev1.ResourceList{"cpu": resource.MustParse("7500m"), "pods": resource.MustParse("220")},
		Requested:        corev1.ResourceList{"cpu": resource.MustParse("3"), "pods": resource.MustParse("1")},
		RequestedPercent: map[corev1.ResourceName]int32{"cpu": 40, "pods": 0},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tidekeeperv1.NodePoolStatus{}, "Conditions")); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
