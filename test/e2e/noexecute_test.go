// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestNoExecuteIsBounded checks that a NoExecute taint is added to a limited share of the nodes at
// a time. The next node has to wait until the pods on a previous node have terminated.
func TestNoExecuteIsBounded(t *testing.T) {
	cluster.StartManager(t, "--no-execute-share=20", "--no-execute-interval=1s")
	const nodes = 10
	addMembers(t, "evict", nodes)
	d := deployment("evict", nodes, corev1.PodSpec{
		NodeSelector: map[string]string{role("evict"): ""},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "evict"}},
		}},
		Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
	})
	// The pods terminate slowly, so that a manager that did not wait would taint too many nodes at
	// the same time.
	d.Spec.Template.Annotations = map[string]string{"sandbox.tidekeeper.dev/terminated-after": "500ms"}
	cluster.Apply(t, d)
	eventuallyReady(t, d)

	emptying := watchEmptying(t, "evict")
	p := framework.Pool("evict")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/evict", Effect: corev1.TaintEffectNoExecute}}
	cluster.Apply(t, p)
	healthyWith(t, "evict", nodes)
	eventuallyPool(t, "evict", "has no pods left", func(p *tidekeeperv1.NodePool) error {
		return diff(int64(0), p.Status.Requested.Pods().Value())
	})
	if most := emptying(); most > 2 || most == 0 {
		t.Errorf("up to %d nodes were being emptied at once; want 1 or 2, which is 20%% of %d", most, nodes)
	}
}

// watchEmptying watches the nodes and pods of a pool. The returned function stops the watches and
// returns the largest number of nodes that simultaneously had the pool's taint and a pod left to
// evict.
func watchEmptying(t *testing.T, pool string) func() int {
	t.Helper()
	events := watchNodesAndPods(t, pool)
	return func() (most int) {
		tainted, on := sets.New[string](), map[string]string{}
		for _, event := range events() {
			switch o := event.Object.(type) {
			case *corev1.Node:
				if len(shapeOfNode(o).Taints) > 0 {
					tainted.Insert(o.Name)
				}
			case *corev1.Pod:
				if on[o.Name] = o.Spec.NodeName; event.Type == watch.Deleted || o.Spec.NodeName == "" {
					delete(on, o.Name)
				}
			}
			losing := sets.New[string]()
			for _, node := range on {
				if tainted.Has(node) {
					losing.Insert(node)
				}
			}
			most = max(most, len(losing))
		}
		return most
	}
}

// writtenEvent is an event of a watch, with the version of its object.
type writtenEvent struct {
	version uint64
	event   watch.Event
}

// watchNodesAndPods watches the nodes of a pool, and the pods with the pool's name in the label app.
// The returned function stops the watches once they have reported all that was written before its call,
// and returns their events, in the order of the API server's writes.
func watchNodesAndPods(t *testing.T, pool string) func() []watch.Event {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var (
		mu      sync.Mutex
		all     []writtenEvent
		watches sync.WaitGroup
	)
	follow := func(w watch.Interface, err error) {
		if err != nil {
			t.Fatal(err)
		}
		watches.Go(func() {
			for event := range w.ResultChan() {
				o, err := meta.Accessor(event.Object)
				if err != nil {
					continue
				}
				version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				all = append(all, writtenEvent{version, event})
				mu.Unlock()
			}
		})
	}
	ofNodes, ofPods := metav1.ListOptions{LabelSelector: role(pool)}, metav1.ListOptions{LabelSelector: "app=" + pool}
	nodes, err := client.CoreV1().Nodes().Watch(ctx, ofNodes)
	follow(nodes, err)
	pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, ofPods)
	follow(pods, err)
	return func() (events []watch.Event) {
		framework.Eventually(t, "the watches have caught up", func() error {
			nodes, nodesErr := client.CoreV1().Nodes().List(ctx, ofNodes)
			pods, podsErr := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, ofPods)
			if err := errors.Join(nodesErr, podsErr); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			return diff(versions(nodes.Items, pods.Items), reported(all))
		})
		cancel()
		watches.Wait()
		slices.SortStableFunc(all, func(a, b writtenEvent) int { return cmp.Compare(a.version, b.version) })
		for _, w := range all {
			events = append(events, w.event)
		}
		return events
	}
}

// versions returns the versions of nodes and pods, by kind and name.
func versions(nodes []corev1.Node, pods []corev1.Pod) map[string]string {
	of := map[string]string{}
	for i := range nodes {
		of["node "+nodes[i].Name] = nodes[i].ResourceVersion
	}
	for i := range pods {
		of["pod "+pods[i].Name] = pods[i].ResourceVersion
	}
	return of
}

// reported returns the last versions of the nodes and pods that exist according to events, by kind
// and name.
func reported(events []writtenEvent) map[string]string {
	of := map[string]string{}
	for _, w := range events {
		name := ""
		switch o := w.event.Object.(type) {
		case *corev1.Node:
			name = "node " + o.Name
		case *corev1.Pod:
			name = "pod " + o.Name
		default:
			continue
		}
		if of[name] = strconv.FormatUint(w.version, 10); w.event.Type == watch.Deleted {
			delete(of, name)
		}
	}
	return of
}

// TestNoExecuteReplacesAWeakerTaint checks that a NoExecute taint replaces a weaker taint with the
// same key only when it is the node's turn. Until then the weaker taint keeps new pods away from a
// node that is about to be emptied.
func TestNoExecuteReplacesAWeakerTaint(t *testing.T) {
	cluster.StartManager(t)
	const nodes = 3
	members := addMembers(t, "closed", nodes)
	p := framework.Pool("closed")
	p.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/closed", Effect: corev1.TaintEffectNoSchedule}}
	cluster.Apply(t, p)
	healthyWith(t, "closed", nodes)
	client, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{LabelSelector: role("closed")})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()

	cluster.Change(t, p, func() { p.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute })
	healthyWith(t, "closed", nodes)
	last := map[string]string{} // The final resourceVersion of each node.
	for _, name := range members {
		node := framework.Node(name)
		cluster.Refresh(t, node)
		last[name] = node.ResourceVersion
		if d := diff([]string{"example.com/closed=:NoExecute"}, shapeOfNode(node).Taints); d != nil {
			t.Errorf("%s: taints %v", name, d)
		}
	}
	for event := range changes.ResultChan() {
		node, ok := event.Object.(*corev1.Node)
		if !ok {
			t.Fatalf("%v", event)
		}
		if taints := shapeOfNode(node).Taints; len(taints) != 1 {
			t.Errorf("%s had the taints %q", node.Name, taints)
		}
		if last[node.Name] == node.ResourceVersion {
			delete(last, node.Name)
		}
		if len(last) == 0 {
			return
		}
	}
}
