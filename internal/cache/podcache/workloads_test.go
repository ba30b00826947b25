// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// emptyCache returns a synced pod cache without pods, and a Workloads that queries it.
func emptyCache(t *testing.T) (*Workloads, *informer) {
	t.Helper()
	w := &Workloads{}
	i := w.Follow(NewInformer)(cachetesting.NewFakeControllerSource(), &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}).(*informer)
	if _, err := w.Oldest(Workload{Namespace: "shop", Kind: "DaemonSet", Name: "a"}); err == nil {
		t.Error("a cache that is not synced has an answer")
	}
	start(t, i)
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("the cache is not synced")
	}
	return w, i
}

// ownedPod draws a random pod from a few names, namespaces and owners.
func ownedPod(t *rapid.T) *corev1.Pod {
	draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: draw("pod", "p", "q", "r", "s", "t"), Namespace: draw("namespace", "shop", "bank"),
		CreationTimestamp: metav1.Unix(int64(rapid.IntRange(1, 9).Draw(t, "created")), 0),
		Labels:            map[string]string{"pod-template-hash": draw("hash", "", "7d4b9")},
	}}
	pod.Spec.NodeName = draw("node", "", "a", "b")
	pod.Status.Phase = corev1.PodPhase(draw("phase", "Pending", "Running", "Succeeded", "Failed"))
	if rapid.Bool().Draw(t, "is deleted") {
		pod.DeletionTimestamp = new(metav1.Unix(9, 0))
	}
	for range rapid.IntRange(0, 2).Draw(t, "owners") {
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{
			Kind: draw("kind", "ReplicaSet", "DaemonSet", "Deployment", "DaemonSet/web"), Name: draw("owner", "web", "web-7d4b9", "web/web"),
			UID: types.UID(draw("uid", "1", "2")), Controller: rapid.Ptr(rapid.Bool(), true).Draw(t, "controls"),
		})
	}
	return pod
}

// TestLooksAtAllPodsOfAWorkload checks that each query returns the same result as a search through
// all pods, after any sequence of additions, updates and deletions.
func TestLooksAtAllPodsOfAWorkload(t *testing.T) {
	w, i := emptyCache(t)
	store := i.SharedIndexInformer.GetIndexer()
	rapid.Check(t, func(rt *rapid.T) {
		if err := store.Replace(nil, ""); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			pod := ownedPod(rt)
			r, err := i.encoder.record(pod)
			if err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "goes") {
				err = store.Delete(r)
			} else {
				err = store.Update(r)
			}
			if err != nil {
				rt.Fatal(err)
			}
			of := Workload{
				Namespace: pod.Namespace, Kind: rapid.SampledFrom([]string{"ReplicaSet", "DaemonSet", "Deployment", "DaemonSet/web"}).Draw(rt, "asked kind"),
				Name: rapid.SampledFrom([]string{"web", "web-7d4b9", "web/web"}).Draw(rt, "asked name"),
				UID:  types.UID(rapid.SampledFrom([]string{"", "1", "2"}).Draw(rt, "asked uid")),
			}
			oldest, onA := lookAtAll(i, of)
			got, err := w.Oldest(of)
			if err != nil || !got.Equal(oldest) {
				rt.Fatalf("the oldest pod of %+v is of %v, %v; want %v", of, got, err, oldest)
			}
			found, err := w.OnNodes(of, func(node string) bool { return node == "a" })
			slices.SortFunc(found, byName)
			if diff := gocmp.Diff(onA, found); diff != "" || err != nil {
				rt.Fatalf("on the node a, %v (-want +got):\n%s", err, diff)
			}
		}
	})
}

func byName(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }

// lookAtAll computes the expected query results from all pods in the informer's store.
func lookAtAll(i *informer, of Workload) (oldest time.Time, onA []*corev1.Pod) {
	for _, object := range i.GetIndexer().List() {
		pod := object.(*corev1.Pod)
		kind, name := pods.Workload(pod)
		if pod.Namespace != of.Namespace || kind != of.Kind || name != of.Name || of.UID != "" && metav1.GetControllerOf(pod).UID != of.UID {
			continue
		}
		if pod.Spec.NodeName == "a" {
			onA = append(onA, pod)
		}
		if created := pod.CreationTimestamp.Time; pods.IsActive(pod) && (oldest.IsZero() || created.Before(oldest)) {
			oldest = created
		}
	}
	slices.SortFunc(onA, byName)
	return oldest, onA
}

// TestALookMakesNoPods checks that a query builds no Pods: its memory grows by at most 24 bytes for
// each pod of the workload, regardless of the other pods in the namespace.
func TestALookMakesNoPods(t *testing.T) {
	const large = 10_000
	w, i := emptyCache(t)
	for n := range large {
		name := "large"
		if n < 3 {
			name = "small"
		}
		r, err := i.encoder.record(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("p%d", n), Namespace: "shop", CreationTimestamp: metav1.Unix(int64(large-n), 0),
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: name, UID: types.UID(name), Controller: new(true)}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := i.SharedIndexInformer.GetIndexer().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for name, pods := range map[string]uint64{"small": 3, "large": large} {
		look := func() {
			if oldest, err := w.Oldest(Workload{Namespace: "shop", Kind: "DaemonSet", Name: name}); err != nil || oldest.IsZero() {
				t.Fatalf("the oldest pod is of %v, %v", oldest, err)
			}
		}
		if allocations := testing.AllocsPerRun(10, look); allocations > 10 {
			t.Errorf("a look at the %d pods of %s allocates %g times", pods, name, allocations)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		look()
		runtime.ReadMemStats(&after)
		if took, most := after.TotalAlloc-before.TotalAlloc, 24*pods+32<<10; took > most {
			t.Errorf("a look at the %d pods of %s takes %d bytes, more than %d", pods, name, took, most)
		}
	}
}

// TestFollowsAVerifiedInformer checks that the pods of an informer that verifies its decoding can
// be queried, too.
func TestFollowsAVerifiedInformer(t *testing.T) {
	create, err := New(Connection{Config: &rest.Config{}, Client: http.DefaultClient, Scheme: scheme.Scheme}, Content{Verify: clock.RealClock{}}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w := &Workloads{}
	w.Follow(create)(cachetesting.NewFakeControllerSource(), &corev1.Pod{}, 0, cache.Indexers{})
	if !w.Watched() {
		t.Error("the pods are not watched")
	}
}
