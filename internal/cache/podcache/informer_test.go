// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

// withoutLabels is a transform that removes the labels of pods.
func withoutLabels(object any) (any, error) {
	pod := object.(*corev1.Pod).DeepCopy()
	pod.Labels = nil
	return pod, nil
}

// start runs an informer until the test ends.
func start(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(stopped) }()
	t.Cleanup(func() { cancel(); <-stopped })
}

func podNamed(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"a": "b"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app"}}},
	}
}

// TestInformerHandsOutPods checks that event handlers and readers of the informer receive
// transformed Pods.
func TestInformerHandsOutPods(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	source.Add(podNamed("first", "a"))
	pods := NewInformer(source, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := pods.SetTransform(withoutLabels); err != nil {
		t.Fatal(err)
	}
	if err := pods.AddIndexers(cache.Indexers{"node": func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 10)
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			seen <- fmt.Sprintf("%s came, first: %t", object.(*corev1.Pod).Name, first)
		},
		UpdateFunc: func(old, object any) {
			seen <- fmt.Sprintf("%s went from %s to %s", object.(*corev1.Pod).Name, old.(*corev1.Pod).Spec.NodeName, object.(*corev1.Pod).Spec.NodeName)
		},
		DeleteFunc: func(object any) { seen <- object.(*corev1.Pod).Name + " is gone" },
	}); err != nil {
		t.Fatal(err)
	}
	start(t, pods)
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-seen:
			if got != want {
				t.Fatalf("saw %q, want %q", got, want)
			}
		case <-time.After(waitfor.Patience):
			t.Fatalf("did not see %q", want)
		}
	}
	expect("first came, first: true")
	source.Add(podNamed("second", "a"))
	expect("second came, first: false")
	source.Modify(podNamed("second", "b"))
	expect("second went from a to b")

	if kept := pods.(*informer).SharedIndexInformer.GetStore().List(); len(kept) != 2 {
		t.Errorf("%d objects are kept, want 2", len(kept))
	} else if _, ok := kept[0].(*record); !ok {
		t.Errorf("a %T is kept, want a record", kept[0])
	}
	store := pods.GetIndexer()
	got, exists, err := store.GetByKey("shop/second")
	if err != nil || !exists {
		t.Fatalf("get: %t, %v", exists, err)
	}
	want := podNamed("second", "b")
	want.Labels, want.ResourceVersion = nil, got.(*corev1.Pod).ResourceVersion
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the store has (-want +got):\n%s", diff)
	}
	byNode := func(node string) []string {
		found, err := store.ByIndex("node", node)
		if err != nil {
			t.Fatal(err)
		}
		return names(found)
	}
	for what, pair := range map[string][2][]string{
		"on node a": {byNode("a"), {"first"}}, "on node b": {byNode("b"), {"second"}}, "all": {names(store.List()), {"first", "second"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s there are %q, want %q", what, pair[0], pair[1])
		}
	}
	if same, exists, err := store.Get(want); err != nil || !exists || same.(*corev1.Pod).Name != "second" {
		t.Errorf("get by object: %v, %t, %v", same, exists, err)
	}
	if same, err := store.Index("node", want); err != nil || !slices.Equal(names(same), []string{"second"}) {
		t.Errorf("index by object: %v, %v", same, err)
	}

	source.Delete(podNamed("first", "a"))
	expect("first is gone")
}

func names(pods []any) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.(*corev1.Pod).Name)
	}
	slices.Sort(all)
	return all
}

// TestMissedDeletion checks that the tombstone for a missed deletion contains the pod's last known
// state as a Pod.
func TestMissedDeletion(t *testing.T) {
	r, err := (&encoder{}).record(podNamed("first", "a"))
	if err != nil {
		t.Fatal(err)
	}
	gap := newRestorer().object(cache.DeletedFinalStateUnknown{Key: "shop/first", Obj: r}).(cache.DeletedFinalStateUnknown)
	if pod, ok := gap.Obj.(*corev1.Pod); !ok || pod.Name != "first" || gap.Key != "shop/first" {
		t.Errorf("a missed deletion is passed on as %+v", gap)
	}
}

// TestOneEventRestoresOnePod checks that the Pod of an event is restored only once, so that the
// indexes and all event handlers receive the same Pod.
func TestOneEventRestoresOnePod(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	pods := NewInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	seen := make(chan *corev1.Pod, 10)
	if err := pods.AddIndexers(cache.Indexers{"any": func(object any) ([]string, error) {
		seen <- object.(*corev1.Pod)
		return nil, nil
	}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) { seen <- object.(*corev1.Pod) }}); err != nil {
			t.Fatal(err)
		}
	}
	start(t, pods)
	source.Add(podNamed("first", "a"))
	var first *corev1.Pod
	for i := range 3 {
		select {
		case pod := <-seen:
			if first == nil {
				first = pod
			}
			if pod != first {
				t.Errorf("the pod was restored again for reader %d", i)
			}
		case <-time.After(waitfor.Patience):
			t.Fatal("the event did not come")
		}
	}
}

func TestInformerOfOthersIsClientGos(t *testing.T) {
	if nodes, ok := NewInformer(cachetesting.NewFakeControllerSource(), &corev1.Node{}, 0, nil).(*informer); ok {
		t.Errorf("nodes are kept by %T", nodes)
	}
}
