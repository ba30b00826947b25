// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// worldLabel is the node label that names the world that a node belongs to. All pods of a world
// select this label, so that several worlds can share a cluster.
const worldLabel = "example.com/world"

// gpu is an extended resource that some nodes have.
const gpu = "nvidia.com/gpu"

// world is a set of a few random nodes, with a namespace and a pool of the same name.
type world struct {
	*rand.Rand
	name  string
	pool  *tidekeeperv1.NodePool
	nodes []corev1.Node
	pods  int // number of pods created so far
}

// newWorld creates a world's namespace and pool. The world's nodes have the pool's taints.
func newWorld(t *testing.T, name string, random *rand.Rand) *world {
	t.Helper()
	w := &world{Rand: random, name: name, pool: framework.Pool(name)}
	w.pool.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{worldLabel: tidekeeperv1.LabelValue(name)}}
	w.pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/pool": tidekeeperv1.LabelValue(name)}
	if w.chance(50) {
		w.pool.Spec.Taints = []tidekeeperv1.Taint{{Key: "example.com/pool", Value: tidekeeperv1.LabelValue(name), Effect: corev1.TaintEffectNoSchedule}}
	}
	cluster.Apply(t, w.pool)
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	framework.Eventually(t, "pods can be created in "+name, func() error {
		return cluster.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
	t.Cleanup(func() {
		// The pods are deleted without waiting, because the simulated nodes run nothing, and later
		// worlds use other nodes.
		ctx := context.WithoutCancel(t.Context())
		if err := cluster.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(name), client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// chance returns true with the given probability.
func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

// oneOf returns a randomly chosen argument.
func oneOf[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

// list returns a resource list made of pairs of name and quantity. It skips pairs with an empty
// quantity.
func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
	}
	return l
}

// taints lists the taints that nodes may have in addition to the pool's taints.
var taints = []corev1.Taint{
	{Key: "example.com/dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule},
	{Key: "example.com/spot", Effect: corev1.TaintEffectNoExecute},
	{Key: "example.com/slow", Effect: corev1.TaintEffectPreferNoSchedule},
}

// addNodes creates some random nodes, and waits until the scheduler can use them.
func (w *world) addNodes(t *testing.T, count int) {
	t.Helper()
	for i := range count {
		n := framework.Node(fmt.Sprintf("%s-%d", w.name, i))
		n.Labels = map[string]string{
			worldLabel: w.name, corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: w.name + oneOf(w, "-a", "-b"), "rank": fmt.Sprint(w.IntN(10)),
		}
		if w.chance(60) {
			n.Labels["disk"] = oneOf(w, "ssd", "hdd")
		}
		for _, taint := range w.pool.Spec.Taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint.Key, Value: string(taint.Value), Effect: taint.Effect})
		}
		for _, taint := range taints {
			if w.chance(15) {
				n.Spec.Taints = append(n.Spec.Taints, taint)
			}
		}
		n.Spec.Unschedulable = w.chance(12)
		n.Status.Allocatable = list("cpu", oneOf(w, "700m", "1", "1900m", "3", "4"), "memory", oneOf(w, "700Mi", "1Gi", "2Gi", "4000M"),
			"pods", oneOf(w, "3", "5", "8", "12"), "ephemeral-storage", oneOf(w, "", "4Gi", "4Gi"), gpu, oneOf(w, "", "", "1", "3"))
		w.addNode(t, n)
	}
	w.awaitNodes(t)
}

// addNode creates a node and adds it to the world.
func (w *world) addNode(t *testing.T, n *corev1.Node) {
	t.Helper()
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now()}}
	cluster.Apply(t, n)
	w.nodes = append(w.nodes, *n)
}

// awaitNodes waits until the scheduler can use the nodes, and until they are in the API server's
// watch cache, which the plugin reads.
func (w *world) awaitNodes(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the nodes can be used", func() error {
		nodes := &corev1.NodeList{}
		if err := cluster.List(t.Context(), nodes, client.MatchingLabels{worldLabel: w.name}, cached()); err != nil {
			return err
		}
		if len(nodes.Items) != len(w.nodes) {
			return fmt.Errorf("%d nodes", len(nodes.Items))
		}
		for _, n := range nodes.Items {
			for _, taint := range n.Spec.Taints {
				if taint.Key == corev1.TaintNodeNotReady {
					return errors.New(n.Name + " is not ready")
				}
			}
		}
		w.nodes = nodes.Items
		return nil
	})
}

// cached makes the API server answer a list from its watch cache, as for the plugin.
func cached() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// container returns a container with the given requests.
func container(name string, requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limitsOf(requests)}}
}

// limitsOf returns the limits that the API server requires for the given requests: the limits of
// extended resources must equal their requests.
func limitsOf(requests corev1.ResourceList) corev1.ResourceList {
	if amount, has := requests[gpu]; has {
		return corev1.ResourceList{gpu: amount}
	}
	return nil
}

// occupy binds random pods to the nodes, bypassing the scheduler, so that a node may have more pods
// than fit. Some pods have terminated, and use no resources.
func (w *world) occupy(t *testing.T) {
	t.Helper()
	for range w.IntN(6) {
		on := oneOf(w, w.nodes...)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("running-", w.pods), Namespace: w.name, Labels: map[string]string{"app": "running"}},
			Spec: corev1.PodSpec{
				NodeName: on.Name, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{container("app", list("cpu", oneOf(w, "", "100m", "450m", "1"), "memory", oneOf(w, "", "100Mi", "1Gi")))},
			},
		}
		if amount := on.Status.Allocatable[gpu]; !amount.IsZero() && w.chance(40) {
			pod.Spec.Containers = append(pod.Spec.Containers, container("gpu", list(gpu, "1")))
		}
		if w.chance(30) {
			pod.Spec.InitContainers = []corev1.Container{container("init", list("cpu", "700m"))}
		}
		if err := cluster.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		w.pods++
		if w.chance(25) {
			cluster.ChangeStatus(t, pod, func() { pod.Status.Phase = oneOf(w, corev1.PodSucceeded, corev1.PodFailed) })
		}
	}
	w.awaitPods(t)
}

// awaitPods waits until the pods are in the API server's watch cache, which the plugin reads, in their
// latest version: some of them have just terminated.
func (w *world) awaitPods(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "all pods are in the cache", func() error {
		stored, pods := &corev1.PodList{}, &corev1.PodList{}
		if err := errors.Join(cluster.List(t.Context(), stored, client.InNamespace(w.name)), cluster.List(t.Context(), pods, client.InNamespace(w.name), cached())); err != nil {
			return err
		}
		if len(pods.Items) != w.pods {
			return fmt.Errorf("%d of %d", len(pods.Items), w.pods)
		}
		for _, p := range stored.Items {
			if !slices.ContainsFunc(pods.Items, func(c corev1.Pod) bool { return c.Name == p.Name && c.ResourceVersion == p.ResourceVersion }) {
				return fmt.Errorf("%s is older", p.Name)
			}
		}
		return nil
	})
}
