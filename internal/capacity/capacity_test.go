// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// list returns a resource list from alternating names and quantities.
func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func lost(cause tidekeeperv1.LostCause, of corev1.ResourceList) tidekeeperv1.Lost {
	return tidekeeperv1.Lost{Cause: cause, Nodes: 1, Resources: of}
}

func fitOn(node string, of corev1.ResourceList) tidekeeperv1.LargestFit {
	return tidekeeperv1.LargestFit{Node: node, Resources: of}
}

// aNode returns a ready node with the given allocatable resources.
func aNode(name string, allocatable ...string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{
			Capacity: list(allocatable...), Allocatable: list(allocatable...),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// aPod returns a pod on the given node that is controlled by an owner of the given kind and name.
// If owner or on is empty, the pod has no controller or no node.
func aPod(name, kind, owner, on string, requests ...string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(kind + owner), Controller: new(true)}}
	}
	p.Spec.NodeName = on
	p.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: list(requests...)}}}
	return p
}

// newCluster is like [New], but takes slices of values instead of pointers.
func newCluster(nodes []corev1.Node, pods []corev1.Pod) *Cluster {
	running := make([]*corev1.Pod, len(pods))
	for i := range pods {
		running[i] = &pods[i]
	}
	list := make([]*corev1.Node, len(nodes))
	for i := range nodes {
		list[i] = &nodes[i]
	}
	return New(list, running)
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	quantities := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff(want, got, quantities, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestLargestFitsAreWholeVectors checks that the nodes with the most free CPU, memory and GPUs are
// reported as separate largest fits, each with all free resources of its node.
func TestLargestFitsAreWholeVectors(t *testing.T) {
	nodes := []corev1.Node{
		aNode("a", "cpu", "8", "memory", "2Gi", "pods", "10"),
		aNode("b", "cpu", "2", "memory", "16Gi", "pods", "10"),
		aNode("c", "cpu", "4", "memory", "4Gi", "pods", "10", "nvidia.com/gpu", "1"),
	}
	got := newCluster(nodes, nil).Members([]string{"a", "b", "c"}).Room(nil).LargestFits
	equal(t, "largestFits", []tidekeeperv1.LargestFit{
		fitOn("a", list("cpu", "8", "memory", "2Gi", "pods", "10", "nvidia.com/gpu", "0")),
		fitOn("b", list("cpu", "2", "memory", "16Gi", "pods", "10", "nvidia.com/gpu", "0")),
		fitOn("c", list("cpu", "4", "memory", "4Gi", "pods", "10", "nvidia.com/gpu", "1")),
	}, got)
}

func TestFit(t *testing.T) {
	nodes := []corev1.Node{
		aNode("a", "cpu", "8", "memory", "8Gi", "pods", "10"),
		aNode("b", "cpu", "8", "memory", "32Gi", "pods", "3"),
		aNode("c", "cpu", "8", "memory", "32Gi", "pods", "10"),
		aNode("d", "cpu", "8", "memory", "32Gi", "pods", "10"),
		aNode("e", "cpu", "8", "memory", "32Gi", "pods", "10"),
	}
	nodes[2].Spec.Unschedulable = true
	nodes[3].Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	names := []string{"a", "b", "c", "d", "e"}
	running := []corev1.Pod{aPod("x", "ReplicaSet", "x", "e", "cpu", "7500m"), aPod("y", "DaemonSet", "y", "e", "cpu", "100m")}
	c := newCluster(nodes, running)

	pod := aPod("new", "", "", "", "cpu", "1", "memory", "2Gi")
	equal(t, "fit", Fit{
		Copies: 7, Nodes: 2, OnEmptyNode: 7,
		LimitedBy: []Count{{"memory", 1, false}, {"pods", 1, false}},
		Refused:   []Count{{"cordoned", 1, false}, {"not enough cpu", 1, false}, {"taint gpu:NoSchedule", 1, false}},
	}, c.Members(names).Fit(&pod))

	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "c"}
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
	equal(t, "fit", Fit{
		Copies: 8, Nodes: 1, OnEmptyNode: 8, AtMost: []string{"persistent volumes"},
		LimitedBy: []Count{{"cpu", 1, false}}, Refused: []Count{{"node selector or affinity", 4, false}},
	}, c.Members(names).Fit(&pod))

	pod = aPod("huge", "", "", "", "cpu", "64")
	equal(t, "fit", Fit{Refused: []Count{{"larger than the node: cpu", 3, true}, {"cordoned and larger than the node: cpu", 1, true}, {"taint gpu:NoSchedule and larger than the node: cpu", 1, true}}}, c.Members(names).Fit(&pod))

	pod = aPod("gpu", "", "", "", "nvidia.com/gpu", "1")
	equal(t, "fit", Fit{Refused: []Count{
		{"no node has nvidia.com/gpu", 3, false}, {"cordoned and no node has nvidia.com/gpu", 1, false}, {"taint gpu:NoSchedule and no node has nvidia.com/gpu", 1, false},
	}}, c.Members(names).Fit(&pod))
}

func TestLose(t *testing.T) {
	nodes := []corev1.Node{
		aNode("a", "cpu", "4", "memory", "8Gi", "pods", "10"),
		aNode("b", "cpu", "4", "memory", "8Gi", "pods", "10"),
		aNode("c", "cpu", "4", "memory", "8Gi", "pods", "10"),
	}
	pods := []corev1.Pod{
		aPod("big", "StatefulSet", "db", "a", "cpu", "3"),
		aPod("small-1", "ReplicaSet", "web-7d9", "a", "cpu", "500m"),
		aPod("small-2", "ReplicaSet", "web-7d9", "a", "cpu", "500m"),
		aPod("agent", "DaemonSet", "agent", "a", "cpu", "100m"),
		aPod("alone", "", "", "a", "cpu", "100m"),
		aPod("b", "ReplicaSet", "other", "b", "cpu", "2500m"),
	}
	c := newCluster(nodes, pods)
	for range 2 { // Lose must not change the cluster.
		l := c.Lose([]string{"a"}, nil)
		equal(t, "all find a place", Loss{Nodes: []string{"a"}, Pods: 3, Unmanaged: 1}, l)
	}
	equal(t, "both empty nodes lost", Loss{
		Nodes: []string{"a", "c"}, Pods: 3, Unmanaged: 1, WithoutPlace: []WithoutPlace{{"shop", "StatefulSet/db", 1}},
		Requests: list("cpu", "3", "pods", "1"),
	}, c.Lose([]string{"a", "c"}, nil))

	// A node whose memory is overcommitted still accepts pods that request no memory.
	over := aPod("over", "", "", "c", "memory", "9Gi")
	equal(t, "memory is overcommitted", Loss{Nodes: []string{"a"}, Pods: 3, Unmanaged: 1}, newCluster(nodes, append(pods, over)).Lose([]string{"a"}, nil))

	// Nodes that are not ready, cordoned or tainted accept no pods.
	for _, change := range []func(*corev1.Node){
		func(n *corev1.Node) { n.Spec.Unschedulable = true },
		func(n *corev1.Node) { n.Status.Conditions = nil },
		func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}}
		},
	} {
		changed := nodes[2].DeepCopy()
		change(changed)
		l := newCluster([]corev1.Node{nodes[0], nodes[1], *changed}, pods).Lose([]string{"a"}, nil)
		if l.Homeless() != 1 {
			t.Errorf("%d pods without place, want 1", l.Homeless())
		}
	}
}

func TestShares(t *testing.T) {
	nodes := []corev1.Node{aNode("a", "cpu", "10", "pods", "10")}
	pods := []corev1.Pod{
		aPod("1", "StatefulSet", "db", "a", "cpu", "4"), aPod("2", "StatefulSet", "db", "a", "cpu", "2"),
		aPod("3", "", "", "a", "cpu", "1"), aPod("4", "StatefulSet", "x", "a", "cpu", "2"), aPod("5", "StatefulSet", "y", "a", "cpu", "1"),
	}
	pods[3].Namespace, pods[4].Namespace = "other", "third"
	c := newCluster(nodes, pods)
	equal(t, "namespaces", []Share{{"shop", 3, 70}, {"other", 1, 20}, {"third", 1, 10}}, c.Members([]string{"a"}).Shares("cpu", false, 2))
	equal(t, "workloads", []Share{{"shop/StatefulSet/db", 2, 60}, {"", 3, 40}}, c.Members([]string{"a"}).Shares("cpu", true, 1))
	if got := c.Members([]string{"a"}).Shares("memory", true, 1); got != nil {
		t.Errorf("shares of a resource that no node has: %v", got)
	}
}

// world generates random nodes and pods.
func world(t *rapid.T) ([]corev1.Node, []corev1.Pod) {
	var nodes []corev1.Node
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		n := aNode(fmt.Sprint("n", i), "cpu", fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "cpu")), "memory", fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "memory"), "Gi"), "pods", fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "slots")))
		n.Labels["zone"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")
		n.Spec.Unschedulable = rapid.IntRange(0, 5).Draw(t, "cordoned") == 0
		if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
		}
		nodes = append(nodes, n)
	}
	var pods []corev1.Pod
	for i := range rapid.IntRange(0, 20).Draw(t, "pods") {
		kind := rapid.SampledFrom([]string{"StatefulSet", "StatefulSet", "DaemonSet", "Node"}).Draw(t, "kind")
		p := aPod(fmt.Sprint("p", i), kind, rapid.SampledFrom([]string{"v", "w"}).Draw(t, "owner"), rapid.SampledFrom(nodes).Draw(t, "on").Name,
			"cpu", fmt.Sprint(rapid.IntRange(0, 3000).Draw(t, "request"), "m"), "memory", fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "request of memory"), "Gi"))
		if p.OwnerReferences[0].Name == "w" {
			p.Spec.NodeSelector = map[string]string{"zone": "a"}
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		pods = append(pods, p)
	}
	return nodes, pods
}

// TestLoseOf checks that only the pods of the selected lost nodes are reported, although the pods
// of other lost nodes also take up room.
func TestLoseOf(t *testing.T) {
	nodes := []corev1.Node{
		aNode("a", "cpu", "4", "pods", "10"), aNode("b", "cpu", "4", "pods", "10"), aNode("c", "cpu", "4", "pods", "10"),
	}
	pods := []corev1.Pod{aPod("1", "StatefulSet", "big", "a", "cpu", "3"), aPod("2", "StatefulSet", "small", "b", "cpu", "2"), aPod("3", "", "", "b", "cpu", "1")}
	c := newCluster(nodes, pods)
	equal(t, "the big one's place", Loss{Nodes: []string{"a", "b"}, Pods: 1}, c.Lose([]string{"a", "b"}, []string{"a"}))
	equal(t, "the small one has none", Loss{
		Nodes: []string{"a", "b"}, Pods: 1, Unmanaged: 1, WithoutPlace: []WithoutPlace{{"shop", "StatefulSet/small", 1}}, Requests: list("cpu", "2", "pods", "1"),
	}, c.Lose([]string{"a", "b"}, []string{"b"}))
}

// TestRoomAddsUp checks that usable and lost resources add up to the allocatable resources, and
// that no more resources are free than usable.
func TestRoomAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := world(t)
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		l := newCluster(nodes, pods).Members(names).Room(nil)
		for name, allocatable := range l.Allocatable {
			sum := l.Usable[name].DeepCopy()
			for _, lost := range l.Lost {
				sum.Add(lost.Resources[name])
			}
			if sum.Cmp(allocatable) != 0 {
				t.Errorf("%s: usable %s and lost are %s, want %s", name, quantityOf(l.Usable, name), sum.String(), allocatable.String())
			}
			if free, usable := l.Free[name], l.Usable[name]; free.Cmp(usable) > 0 {
				t.Errorf("%s: %s is free of %s usable", name, free.String(), usable.String())
			}
		}
	})
}

func quantityOf(l corev1.ResourceList, name corev1.ResourceName) string {
	q := l[name]
	return q.String()
}

// TestFitIsWhatCanBePlaced checks that the number of copies returned by Fit equals the number of
// copies that can be placed individually.
func TestFitIsWhatCanBePlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := world(t)
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		_, shapes := world(t)
		if len(shapes) == 0 {
			return
		}
		shape := shapes[0]
		shape.Spec.NodeName, shape.OwnerReferences = "", nil
		fit := newCluster(nodes, pods).Members(names).Fit(&shape)
		placed := int64(0)
		for _, n := range nodes {
			for {
				one := newCluster(nodes, pods).Members([]string{n.Name}).Fit(&shape)
				if one.Copies == 0 {
					break
				}
				copied := shape
				copied.Spec.NodeName = n.Name
				pods = append(pods, copied)
				placed++
			}
		}
		if placed != fit.Copies {
			t.Errorf("%d copies can be placed, and Fit says %d", placed, fit.Copies)
		}
	})
}

// TestLossIsAPlacement checks that Lose places pods only on remaining nodes that accept them and
// have room for them, and that a second call returns the same result.
func TestLossIsAPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := world(t)
		lost := rapid.SliceOfDistinct(rapid.SampledFrom(nodes), func(n corev1.Node) string { return n.Name }).Draw(t, "lost")
		var names []string
		for _, n := range lost {
			names = append(names, n.Name)
		}
		c := newCluster(nodes, pods)
		l := c.Lose(names, nil)
		if diff := cmp.Diff(l, c.Lose(names, nil), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("asked again (-first +second):\n%s", diff)
		}
		if l.Homeless() > l.Pods {
			t.Errorf("%d of %d pods are without place", l.Homeless(), l.Pods)
		}
		c.placement.placed = func(p pod, n *node, room vector) {
			if reasons := p.class.refusals(n.object); len(reasons) > 0 {
				t.Errorf("a pod is placed on %s: %s", n.object.Name, reasons)
			}
			for i, left := range room {
				if left < 0 && p.class.request[i] > 0 {
					t.Errorf("%s has %d of %s after a pod was placed", n.object.Name, left, c.axes.names[i])
				}
			}
			for _, name := range names {
				if n.object.Name == name {
					t.Errorf("a pod is placed on %s, which is lost", name)
				}
			}
		}
		c.Lose(names, nil)
	})
}
