// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// fewestReady watches the managers' pods. The returned function stops the watch and returns the
// smallest number of simultaneously ready managers.
func (n *node) fewestReady(t *testing.T) func() int {
	t.Helper()
	watching, err := client.NewWithWatch(n.Config, client.Options{Scheme: n.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	managers := []client.ListOption{client.InNamespace(framework.ManagerNamespace), client.MatchingLabels{"app.kubernetes.io/name": "tidekeeper"}}
	var list corev1.PodList
	if err := watching.List(ctx, &list, managers...); err != nil {
		t.Fatal(err)
	}
	ready := map[types.UID]bool{}
	for _, pod := range list.Items {
		ready[pod.UID] = isReady(&pod)
	}
	events, err := watching.Watch(ctx, &corev1.PodList{}, append(managers, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		t.Fatal(err)
	}
	count := func() (all int) {
		for _, is := range ready {
			if is {
				all++
			}
		}
		return all
	}
	fewest := count()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				ready[pod.UID] = isReady(pod)
				fewest = min(fewest, count())
			}
		}
	}()
	return func() int {
		events.Stop()
		cancel()
		<-done
		return fewest
	}
}

// on returns the names of a namespace's non-terminating pods on the given node.
func (n *node) on(t *testing.T, node, namespace string) []string {
	t.Helper()
	var list corev1.PodList
	if err := n.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

// drain drains the given nodes, and checks that at least one manager is always ready and that both
// are ready in the end.
func (n *node) drain(t *testing.T, nodes ...string) {
	t.Helper()
	fewest := n.fewestReady(t)
	out := n.kubectl(t, append([]string{"drain", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m"}, nodes...)...)
	framework.EventuallyWithin(t, startup, "two managers are ready", func() error {
		_, err := n.managers(t)
		return err
	})
	if got := fewest(); got != 1 {
		t.Errorf("%d managers were ready at the worst time, want 1:\n%s", got, out)
	}
}

// drainLeader drains the leader's node. Another manager takes over, and the node's workload moves
// to another node.
func (n *node) drainLeader(t *testing.T) {
	first, err := n.leader(t)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := n.Get(t.Context(), client.ObjectKey{Namespace: framework.ManagerNamespace, Name: first}, &pod); err != nil {
		t.Fatal(err)
	}
	n.drain(t, pod.Spec.NodeName)
	n.otherLeads(t, first)
	if left := n.on(t, pod.Spec.NodeName, "default"); len(left) > 0 {
		t.Errorf("%v are on the drained node", left)
	}
	n.kubectl(t, "uncordon", pod.Spec.NodeName)
}

// drainBoth drains both nodes. The workload's pods then fit nowhere, but the managers tolerate
// cordoned nodes, so that they can still remove the pools' taints. The managers'
// PodDisruptionBudget delays the second eviction until the first manager has been replaced.
func (n *node) drainBoth(t *testing.T) {
	n.drain(t, "real-1", "real-2")
	for _, name := range []string{"real-1", "real-2"} {
		if left := n.on(t, name, "default"); len(left) > 0 {
			t.Errorf("%v are on %s", left, name)
		}
	}
	n.kubectl(t, "uncordon", "real-1", "real-2")
	n.kubectl(t, "rollout", "status", "deployment/web", framework.LongTimeout)
}
