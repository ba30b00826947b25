// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"encoding/json"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"pgregory.net/rapid"
)

// TestEachKindCountsAllPods compares the pods of each kind with a list of all pods, after any sequence of
// additions and updates.
func TestEachKindCountsAllPods(t *testing.T) {
	w, i := emptyCache(t)
	store := i.SharedIndexInformer.GetIndexer()
	about := func(pod *corev1.Pod, node string) string {
		owners, err := json.Marshal(pod.OwnerReferences)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(node, " ", pod.Namespace, " ", string(owners), pod.Status.Phase, pod.DeletionTimestamp != nil)
	}
	rapid.Check(t, func(rt *rapid.T) {
		if err := store.Replace(nil, ""); err != nil {
			rt.Fatal(err)
		}
		all := map[types.NamespacedName]*corev1.Pod{}
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			pod := ownedPod(rt)
			all[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
			r, err := i.encoder.record(pod)
			if err != nil {
				rt.Fatal(err)
			}
			if err := store.Add(r); err != nil {
				rt.Fatal(err)
			}
		}
		want, got := map[string]int{}, map[string]int{}
		for _, pod := range all {
			want[about(pod, pod.Spec.NodeName)]++
		}
		if err := w.EachKind(func(node string, example *corev1.Pod, count int) { got[about(example, node)] += count }); err != nil {
			rt.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			rt.Errorf("pods by node and kind (-want +got):\n%s", diff)
		}
	})
}

// TestEachKindBuildsFewPods checks that a Pod is built for each kind only, however many pods there are.
func TestEachKindBuildsFewPods(t *testing.T) {
	w, i := emptyCache(t)
	for n := range 1000 {
		r, err := i.encoder.record(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("p", n), Namespace: "shop", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "web", UID: "1", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", n%10)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := i.SharedIndexInformer.GetIndexer().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	built, pods := map[*corev1.Pod]bool{}, 0
	if err := w.EachKind(func(_ string, example *corev1.Pod, count int) { built[example], pods = true, pods+count }); err != nil {
		t.Fatal(err)
	}
	if len(built) != 1 || pods != 1000 {
		t.Errorf("%d Pods are built for %d pods of a kind", len(built), pods)
	}
	unsynced := &Workloads{}
	if err := unsynced.EachKind(nil); err == nil {
		t.Error("pods that are not watched have an answer")
	}
	unsynced.Follow(NewInformer)(cachetesting.NewFakeControllerSource(), &corev1.Pod{}, 0, cache.Indexers{})
	if err := unsynced.EachKind(nil); err == nil {
		t.Error("a cache that is not synced has an answer")
	}
}
