// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// headroomPool returns a pool whose spec requires room for the pods of the given numbers of lost
// nodes and lost zones.
func headroomPool(nodes, zones int32) *tidekeeperv1.NodePool {
	pool := objects.Pool("a").Taint("own", "", corev1.TaintEffectNoSchedule).Obj()
	pool.Spec.Headroom = &tidekeeperv1.Headroom{Nodes: nodes, Zones: zones}
	return pool
}

// headroomNode returns a ready member node with 4 CPU, in the given zone.
func headroomNode(name, zone string) *corev1.Node {
	n := objects.Node(name).Role("a").Ready(corev1.ConditionTrue).Taint("own", "", corev1.TaintEffectNoSchedule).
		Capacity(corev1.ResourceCPU, "4").Capacity(corev1.ResourcePods, "10")
	if zone != "" {
		n.Label(corev1.LabelTopologyZone, zone)
	}
	return n.Obj()
}

// headroomPod returns a pod that is controlled by a ReplicaSet and tolerates the pool's taint.
func headroomPod(name, node, cpu string) *corev1.Pod {
	pod := objects.Pod(name).On(node).Requests(cpu, "").Tolerating(corev1.Toleration{Key: "own", Operator: corev1.TolerationOpExists}).Obj()
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
	return pod
}

func TestHeadroomCondition(t *testing.T) {
	nodes := func(zones ...string) (list []*corev1.Node) {
		for i, zone := range zones {
			list = append(list, headroomNode(fmt.Sprint("n", i), zone))
		}
		return list
	}
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := headroomPod("p", "n0", "1")
		change(p)
		return p
	}
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"} }
	for _, tt := range []struct {
		name    string
		pool    *tidekeeperv1.NodePool
		nodes   []*corev1.Node
		pods    []*corev1.Pod
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{"a place on the other node", headroomPool(1, 0), nodes("a", "a"), []*corev1.Pod{headroomPod("p", "n0", "2")},
			metav1.ConditionTrue, "EnoughRoom", "if any one node is lost, there is a place for its pods"},
		{"no place", headroomPool(1, 0), nodes("a", "a"), []*corev1.Pod{headroomPod("p", "n0", "2"), headroomPod("q", "n0", "2"), headroomPod("r", "n1", "1")},
			metav1.ConditionFalse, "NoPlace", "if node n0 is lost, no place is found for 1 of its 2 pods, which requests 2 CPU: see kubectl tide pools loss"},
		{"a place in the other zone", headroomPool(1, 1), nodes("a", "b"), []*corev1.Pod{headroomPod("p", "n0", "2")},
			metav1.ConditionTrue, "EnoughRoom", "if any one node or zone is lost, there is a place for its pods"},
		{"a zone of two nodes", headroomPool(0, 1), nodes("a", "a", "b"), []*corev1.Pod{headroomPod("p", "n0", "3"), headroomPod("q", "n1", "3")},
			metav1.ConditionFalse, "NoPlace", "if zone a is lost, no place is found for 1 of its 2 pods, which requests 3 CPU: see kubectl tide pools loss"},
		{"a pod that selects the zone", headroomPool(1, 0), nodes("a", "b"), []*corev1.Pod{pod(elsewhere)}, metav1.ConditionFalse, "NoPlace", ""},
		{"a pod that does not tolerate the taint of the other node", headroomPool(1, 0), nodes("a", "a"), []*corev1.Pod{pod(func(p *corev1.Pod) { p.Spec.Tolerations = nil })}, metav1.ConditionFalse, "NoPlace", ""},
		{"a pod that nothing replaces", headroomPool(1, 0), nodes("a"), []*corev1.Pod{pod(func(p *corev1.Pod) { p.OwnerReferences = nil })}, metav1.ConditionTrue, "EnoughRoom", ""},
		{"a pod of a DaemonSet", headroomPool(1, 0), nodes("a"), []*corev1.Pod{pod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" })}, metav1.ConditionTrue, "EnoughRoom", ""},
		{"a pod that is being deleted", headroomPool(1, 0), nodes("a"), []*corev1.Pod{pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: objects.Epoch} })}, metav1.ConditionTrue, "EnoughRoom", ""},
		{"no nodes", headroomPool(1, 1), nil, nil, metav1.ConditionUnknown, "NoNodes", "the pool has no nodes"},
		{"no zones", headroomPool(0, 1), nodes("", ""), nil, metav1.ConditionUnknown, "NoZones", "no node of the pool has the label topology.kubernetes.io/zone"},
		{"no zones, and not even room for a node", headroomPool(1, 1), nodes(""), []*corev1.Pod{headroomPod("p", "n0", "2")}, metav1.ConditionFalse, "NoPlace", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, f := aHeadroomWorker()
			f.SetPool(tt.pool)
			for _, n := range tt.nodes {
				f.SetNode(n)
			}
			for _, p := range tt.pods {
				f.SetPod(p)
			}
			if got := w.condition(tt.pool); got.Status != metav1.ConditionUnknown || got.Reason != "NotEvaluated" {
				t.Errorf("at first it is %s, %s", got.Status, got.Reason)
			}
			w.work(0)
			got := w.condition(tt.pool)
			if got.Status != tt.status || got.Reason != tt.reason || tt.message != "" && got.Message != tt.message {
				t.Errorf("got %s, %s, %q; want %s, %s, %q", got.Status, got.Reason, got.Message, tt.status, tt.reason, tt.message)
			}
		})
	}
}

func aHeadroomWorker() (*headroomWorker, *state.Cluster) {
	f := state.NewCluster()
	return newHeadroomWorker(f, &eventFeed{cluster: f}, clocktesting.NewFakePassiveClock(objects.Epoch)), f
}

// TestHeadroomIsWorkedOutAgain checks that the headroom is evaluated again after a change to any
// node or pod of the cluster, and is not evaluated again without a change.
func TestHeadroomIsWorkedOutAgain(t *testing.T) {
	w, f := aHeadroomWorker()
	pool := headroomPool(1, 0)
	f.SetPool(pool)
	f.SetNode(headroomNode("n0", ""))
	f.SetPod(headroomPod("p", "n0", "1"))
	other := headroomNode("other", "")
	other.Labels = nil // a node that belongs to no pool
	seen := uint64(0)
	for _, step := range []struct {
		name   string
		change func()
		status metav1.ConditionStatus
	}{
		{"at first", func() {}, metav1.ConditionFalse},
		{"a node of no pool", func() { f.SetNode(other) }, metav1.ConditionTrue},
		{"it is full", func() { f.SetPod(headroomPod("full", "other", "4")) }, metav1.ConditionFalse},
		{"it is free again", func() { f.DeletePod("pod-full") }, metav1.ConditionTrue},
		{"it is cordoned", func() {
			cordoned := other.DeepCopy()
			cordoned.Spec.Unschedulable = true
			f.SetNode(cordoned)
		}, metav1.ConditionFalse},
		{"it is uncordoned", func() { f.SetNode(other) }, metav1.ConditionTrue},
		{"it is gone", func() { f.DeleteNode("other") }, metav1.ConditionFalse},
	} {
		step.change()
		now := w.work(seen)
		if now == seen {
			t.Errorf("%s: nothing was worked out", step.name)
		}
		seen = now
		if got := w.condition(pool); got.Status != step.status {
			t.Errorf("%s: %s, %s", step.name, got.Status, got.Message)
		}
		if f.SetPod(headroomPod("p", "n0", "1")); w.work(seen) != seen {
			t.Errorf("%s: worked out again without a change", step.name)
		}
	}
}

// TestHeadroomIsKeptUntilItIsKnown checks that the condition "Headroom" and its observedGeneration
// do not change until the headroom has been evaluated for the current spec. An edit or a new leader
// must not set the condition to Unknown.
func TestHeadroomIsKeptUntilItIsKnown(t *testing.T) {
	w, f := aHeadroomWorker()
	pool := headroomPool(1, 0)
	pool.Generation = 2
	pool.Status.Conditions = []metav1.Condition{{
		Type: "Headroom", Status: metav1.ConditionTrue, Reason: "EnoughRoom", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(objects.Epoch),
	}}
	f.SetPool(pool)
	f.SetNode(headroomNode("n0", ""))
	status := func() *metav1.Condition {
		v, _ := f.Pool(pool.Name)
		pool.Status = newStatus(pool, &v, "", asked{"Headroom": w.condition(pool)}, tidekeeperv1.ManagedKeys{}, objects.Epoch.Add(time.Hour))
		return meta.FindStatusCondition(pool.Status.Conditions, "Headroom")
	}
	if got := status(); got.Status != metav1.ConditionTrue || got.ObservedGeneration != 1 {
		t.Errorf("before it is known it is %+v", got)
	}
	seen := w.work(0)
	if got := status(); got.Status != metav1.ConditionTrue || got.ObservedGeneration != 2 || !got.LastTransitionTime.Time.Equal(objects.Epoch) {
		t.Errorf("it is %+v", got)
	}
	// An edit that does not affect the headroom must still update the observedGeneration.
	edited := pool.DeepCopy()
	edited.Generation, edited.Spec.Annotations = 3, map[string]tidekeeperv1.AnnotationValue{"example.com/edited": "yes"}
	pool = edited
	f.SetPool(pool)
	if got := status(); got.Status != metav1.ConditionTrue || got.ObservedGeneration != 2 {
		t.Errorf("after an edit it is %+v", got)
	}
	if w.work(seen); status().ObservedGeneration != 3 {
		t.Errorf("the edit is not answered: %+v", status())
	}
	pool.Spec.Headroom = nil
	if got := status(); got != nil {
		t.Errorf("it has not asked for %+v", got)
	}
}

// TestHeadroomMessageIsBounded checks that the condition message stays short even if pods request
// many resources with long names.
func TestHeadroomMessageIsBounded(t *testing.T) {
	w, f := aHeadroomWorker()
	pool := headroomPool(1, 0)
	f.SetPool(pool)
	node, pod := headroomNode("n0", ""), headroomPod("p", "n0", "1")
	for i := range 60 {
		name := corev1.ResourceName(fmt.Sprintf("%s.example.com/%d", strings.Repeat("x", 60), i))
		node.Status.Allocatable[name] = resource.MustParse("5")
		pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("5")
	}
	f.SetNode(node)
	f.SetPod(pod)
	w.work(0)
	if got := w.condition(pool); len(got.Message) > 500 {
		t.Errorf("the message has %d bytes", len(got.Message))
	}
}
