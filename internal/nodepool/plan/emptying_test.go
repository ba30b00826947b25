// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// closedAt is the time at which the nodes of these tests were closed, an hour ago.
var closedAt = objects.PatchTime.Add(-time.Hour)

// podOf returns a pod that was created long before the node was closed. owner is "", or a kind and a
// name such as "ReplicaSet web".
func podOf(name, owner string, tolerations ...corev1.Toleration) *corev1.Pod {
	pod := objects.Pod(name).On("n").Phase(corev1.PodRunning).Tolerating(tolerations...).Obj()
	pod.CreationTimestamp = metav1.NewTime(closedAt.Add(-time.Hour))
	if kind, of, owned := strings.Cut(owner, " "); owned {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: of, UID: types.UID(of), Controller: new(true)}}
	}
	return pod
}

// tolerating returns a toleration of the taint gpu. An empty effect tolerates all effects.
func tolerating(effect corev1.TaintEffect, seconds ...int64) corev1.Toleration {
	t := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: effect}
	if len(seconds) > 0 {
		t.TolerationSeconds = &seconds[0]
	}
	return t
}

// closedNode is the input for a node that is closed for the taint gpu:NoExecute of a pool.
func closedNode(list ...*corev1.Pod) plan.EmptyingInput {
	return plan.EmptyingInput{
		Taints: []plan.TaintBeingPrepared{{
			Pool: "worker", Taint: corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoExecute}, Since: closedAt,
		}},
		NodeTaints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}},
		Pods:       list, Attempts: &plan.EvictionAttempts{}, MinDuration: time.Minute,
	}
}

func TestDecideEmptying(t *testing.T) {
	now := objects.PatchTime
	arrived := func(ago time.Duration, pod *corev1.Pod) *corev1.Pod {
		pod.CreationTimestamp = metav1.NewTime(now.Add(-ago))
		return pod
	}
	leaving := func(until time.Duration, pod *corev1.Pod) *corev1.Pod {
		pod.DeletionTimestamp = &metav1.Time{Time: now.Add(until)}
		return pod
	}
	ended := func(pod *corev1.Pod) *corev1.Pod {
		pod.Status.Phase = corev1.PodSucceeded
		return pod
	}
	refused := func(since, at time.Duration) map[types.UID]plan.RefusedEviction {
		return map[types.UID]plan.RefusedEviction{"web": {Reason: "no disruption allowed", Since: now.Add(-since), At: now.Add(-at)}}
	}
	for _, tc := range []struct {
		name     string
		pods     []*corev1.Pod
		attempts plan.EvictionAttempts
		closed   time.Duration // how long ago, an hour by default
		taints   []corev1.Taint
		evict    []string
		left     int
		emptied  bool
		stays    string
		again    time.Duration
	}{
		{name: "no pod", emptied: true},
		{name: "closed just now", closed: 20 * time.Second, again: 40 * time.Second},
		{name: "a pod that does not tolerate the taint", pods: []*corev1.Pod{podOf("a", "ReplicaSet web")}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
		{name: "is evicted at once", closed: time.Second, pods: []*corev1.Pod{podOf("a", "ReplicaSet web")}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
		{name: "without a controller", pods: []*corev1.Pod{podOf("a", "")}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
		{name: "tolerates it", pods: []*corev1.Pod{podOf("a", "", tolerating("")), podOf("b", "", tolerating(corev1.TaintEffectNoExecute))}, emptied: true},
		{name: "has ended", pods: []*corev1.Pod{ended(podOf("a", ""))}, emptied: true},
		{name: "static", pods: []*corev1.Pod{podOf("a", "Node n")}, emptied: true},
		{name: "is being deleted", pods: []*corev1.Pod{leaving(time.Second, podOf("a", ""))}, left: 1, again: 5 * time.Second},
		{name: "should be gone", pods: []*corev1.Pod{leaving(-time.Second, podOf("a", "")), leaving(-time.Minute, podOf("b", ""))}, left: 2, again: 5 * time.Second, stays: "default/b: it is deleted"},
		{
			name: "was evicted, which the cache does not show", pods: []*corev1.Pod{podOf("a", "")},
			attempts: plan.EvictionAttempts{Accepted: map[types.UID]time.Time{"pod-a": now.Add(-time.Second)}}, left: 1, again: 5 * time.Second,
		},
		{
			name: "was evicted long ago, and is still there", pods: []*corev1.Pod{podOf("a", "")},
			attempts: plan.EvictionAttempts{Accepted: map[types.UID]time.Time{"pod-a": now.Add(-time.Hour)}}, evict: []string{"a"}, left: 1, again: 5 * time.Second,
		},
		{name: "tolerates it for ten seconds more", pods: []*corev1.Pod{podOf("a", "", tolerating("", 3610))}, left: 1, again: 5 * time.Second},
		{name: "tolerates it for a second more", pods: []*corev1.Pod{podOf("a", "", tolerating("", 3601))}, left: 1, again: time.Second},
		{name: "has tolerated it long enough", pods: []*corev1.Pod{podOf("a", "", tolerating(corev1.TaintEffectNoExecute, 3600))}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
		{name: "by a wrong clock", closed: -24 * time.Hour, pods: []*corev1.Pod{podOf("a", "", tolerating(corev1.TaintEffectNoExecute, 3600))}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
		{
			name:  "an eviction that was refused is not tried at once",
			pods:  []*corev1.Pod{podOf("a", "ReplicaSet web"), podOf("b", "ReplicaSet web"), podOf("c", "ReplicaSet other")},
			evict: []string{"c"}, attempts: plan.EvictionAttempts{Refused: refused(time.Second, 200*time.Millisecond)},
			left: 3, again: time.Second, stays: "default/a: no disruption allowed",
		},
		{
			name: "but later, with the pod that was not tried", pods: []*corev1.Pod{podOf("a", "ReplicaSet web"), podOf("b", "ReplicaSet web")},
			attempts: plan.EvictionAttempts{Refused: refused(time.Second, time.Second), Tried: map[types.UID]time.Time{"pod-a": now.Add(-time.Second)}},
			evict:    []string{"b"}, left: 2, again: 5 * time.Second, stays: "default/a: no disruption allowed",
		},
		{
			name: "later the longer it has been refused", pods: []*corev1.Pod{podOf("a", "ReplicaSet web")},
			attempts: plan.EvictionAttempts{Refused: refused(14*time.Second, 2*time.Second)}, left: 1, again: time.Second, stays: "default/a: no disruption allowed",
		},
		{name: "pods of DaemonSets go last", pods: []*corev1.Pod{podOf("a", "DaemonSet log"), podOf("b", "")}, evict: []string{"b"}, left: 2, again: 5 * time.Second},
		{name: "when the others are gone", pods: []*corev1.Pod{podOf("a", "DaemonSet log")}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
		{name: "not before the least time", closed: 20 * time.Second, pods: []*corev1.Pod{podOf("a", "DaemonSet log")}, left: 1, again: 5 * time.Second},
		{name: "and need not be gone", pods: []*corev1.Pod{leaving(time.Minute, podOf("a", "DaemonSet log"))}, emptied: true},
		{name: "but it is not enough that they leave", pods: []*corev1.Pod{leaving(time.Minute, podOf("a", "DaemonSet log")), podOf("b", "")}, evict: []string{"b"}, left: 1, again: 5 * time.Second},
		{name: "a DaemonSet that starts another one", pods: []*corev1.Pod{arrived(time.Minute, podOf("a", "DaemonSet log", tolerating(corev1.TaintEffectNoSchedule)))}, emptied: true},
		{name: "a pod that would come back goes last", pods: []*corev1.Pod{podOf("a", "", tolerating(corev1.TaintEffectNoSchedule)), podOf("b", "")}, evict: []string{"b"}, left: 2, again: 5 * time.Second},
		{name: "when the others are gone, too", pods: []*corev1.Pod{podOf("a", "", tolerating(corev1.TaintEffectNoSchedule))}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
		{name: "and need not be gone, either", pods: []*corev1.Pod{leaving(time.Minute, podOf("a", "", tolerating(corev1.TaintEffectNoSchedule)))}, emptied: true},
		{
			name: "but is not evicted again", pods: []*corev1.Pod{arrived(time.Minute, podOf("a", "ReplicaSet web", tolerating(corev1.TaintEffectNoSchedule)))},
			left: 1, again: 5 * time.Second, stays: "default/a: it would come back, as it tolerates the taints of the closed node, and not gpu:NoExecute",
		},
		{
			name: "another taint keeps it from coming back", pods: []*corev1.Pod{podOf("a", "", tolerating(corev1.TaintEffectNoSchedule))},
			taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}},
			evict:  []string{"a"}, left: 1, again: 5 * time.Second,
		},
		{name: "a pod that another client put there just now", pods: []*corev1.Pod{arrived(58*time.Second, podOf("a", ""))}, left: 1, again: 2 * time.Second},
		{name: "a pod that another client put there", pods: []*corev1.Pod{arrived(time.Minute, podOf("a", ""))}, evict: []string{"a"}, left: 1, again: 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := closedNode(tc.pods...)
			in.Attempts = &tc.attempts
			if tc.closed != 0 {
				in.Taints[0].Since = now.Add(-tc.closed)
			}
			if tc.taints != nil {
				in.NodeTaints = tc.taints
			}
			got := plan.DecideEmptying(in, now)
			if diff := cmp.Diff(tc.evict, names(got.Evict), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("evicted pods (-want +got):\n%s", diff)
			}
			if got.Left != tc.left || got.Emptied != tc.emptied || got.Again != tc.again {
				t.Errorf("%d pods left, emptied is %t, again after %s; want %d, %t, %s", got.Left, got.Emptied, got.Again, tc.left, tc.emptied, tc.again)
			}
			if stays := strings.TrimSuffix(got.Stays+": "+got.StaysBecause, ": "); !strings.HasPrefix(stays, tc.stays) || tc.stays == "" && stays != "" {
				t.Errorf("stays: %q; want %q", stays, tc.stays)
			}
		})
	}
}

func names(list []*corev1.Pod) (names []string) {
	for _, pod := range list {
		names = append(names, pod.Name)
	}
	return names
}

// TestEmptyingForSeveralTaints checks that the toleration of each taint counts from the time at
// which the node was closed for the taint.
func TestEmptyingForSeveralTaints(t *testing.T) {
	now := objects.PatchTime
	in := closedNode(
		podOf("both", "", tolerating(""), corev1.Toleration{Key: "fpga", Operator: corev1.TolerationOpExists}),
		podOf("gpu-only", "", tolerating("")),
		podOf("gpu-for-a-while", "", tolerating("", 7200), corev1.Toleration{Key: "fpga", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(30))}),
	)
	in.Taints = append(in.Taints, plan.TaintBeingPrepared{Pool: "other", Taint: corev1.Taint{Key: "fpga", Effect: corev1.TaintEffectNoExecute}, Since: now.Add(-27 * time.Second)})
	in.NodeTaints = append(in.NodeTaints, corev1.Taint{Key: "fpga", Effect: corev1.TaintEffectNoSchedule})
	got := plan.DecideEmptying(in, now)
	if diff := cmp.Diff([]string{"gpu-only"}, names(got.Evict)); diff != "" || got.Left != 2 || got.Again != 3*time.Second {
		t.Errorf("%d pods left, again after %s, evicted pods (-want +got):\n%s", got.Left, got.Again, diff)
	}
	in.Pods = in.Pods[:1]
	if got := plan.DecideEmptying(in, now); got.Emptied || got.Again != 33*time.Second {
		t.Errorf("emptied is %t before the least time for the second taint; again after %s", got.Emptied, got.Again)
	}
}

// TestEmptyingTakesTurns checks that many pods in a namespace do not delay pods in another
// namespace, and that each decision evicts a bounded number of pods.
func TestEmptyingTakesTurns(t *testing.T) {
	var list []*corev1.Pod
	for i := range 5000 {
		pod := podOf(fmt.Sprintf("flood-%04d", i), "")
		pod.Namespace = "a-flood"
		list = append(list, pod)
	}
	for i := range 3 {
		pod := podOf(fmt.Sprintf("web-%d", i), "")
		pod.Namespace = "shop"
		list = append(list, pod)
	}
	got := plan.DecideEmptying(closedNode(list...), objects.PatchTime)
	if len(got.Evict) != 16 || got.Left != 5003 || got.Again != time.Second {
		t.Fatalf("%d of %d pods are evicted in a row, again after %s", len(got.Evict), got.Left, got.Again)
	}
	want := []string{"flood-0000", "web-0", "flood-0001", "web-1", "flood-0002", "web-2", "flood-0003"}
	if diff := cmp.Diff(want, names(got.Evict)[:len(want)]); diff != "" {
		t.Errorf("in this order (-want +got):\n%s", diff)
	}
}
