// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// A NoExecute taint is added to a bounded share of the nodes at a time: the next node
// has to wait until the pods of the previous one are gone.
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
	// Pods terminate slowly, so that two shares could overlap.
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

// watchEmptying watches the nodes and pods of a pool. It returns a function that stops
// the watch and returns the largest number of nodes that had the pool's taint and a pod
// left to evict at the same time.
func watchEmptying(t *testing.T, pool string) func() int {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var (
		mu      sync.Mutex
		tainted = sets.New[string]()
		pods    = map[string]string{}
		most    int
		watches sync.WaitGroup
	)
	count := func() {
		losing := sets.New[string]()
		for _, node := range pods {
			if tainted.Has(node) {
				losing.Insert(node)
			}
		}
		most = max(most, len(losing))
	}
	follow := func(w watch.Interface, err error, see func(watch.Event)) {
		if err != nil {
			t.Fatal(err)
		}
		watches.Go(func() {
			for event := range w.ResultChan() {
				mu.Lock()
				see(event)
				count()
				mu.Unlock()
			}
		})
	}
	nodes, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{LabelSelector: role(pool)})
	follow(nodes, err, func(e watch.Event) {
		if node, ok := e.Object.(*corev1.Node); ok && len(shapeOfNode(node).Taints) > 0 {
			tainted.Insert(node.Name)
		}
	})
	all, err := client.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + pool})
	follow(all, err, func(e watch.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return
		}
		if e.Type == watch.Deleted || pod.Spec.NodeName == "" {
			delete(pods, pod.Name)
		} else {
			pods[pod.Name] = pod.Spec.NodeName
		}
	})
	return func() int {
		cancel()
		watches.Wait()
		return most
	}
}
