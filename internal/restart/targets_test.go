// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/test/cost"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// pollSource is a list-watcher for a fixed set of objects that does not support streaming lists.
type pollSource struct {
	*cachetesting.FakeControllerSource
}

func (pollSource) IsWatchListSemanticsUnSupported() bool { return true }

// cacheOf returns a cache with the given number of ScheduledRestarts in one namespace, each with
// its own target. The cache has an index by target.
func cacheOf(t *testing.T, restarts int) cache.Cache {
	t.Helper()
	source := cachetesting.NewFakeControllerSource()
	for i := range restarts {
		name := fmt.Sprint("web-", i)
		source.Add(&tidekeeperv1.ScheduledRestart{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
			Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}},
		})
	}
	scheme := runtime.NewScheme()
	if err := tidekeeperv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(tidekeeperv1.SchemeGroupVersion.WithKind("ScheduledRestart"), meta.RESTScopeNamespace)
	store, err := cache.New(&rest.Config{}, cache.Options{
		Scheme: scheme, Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(pollSource{source}, o, resync, indexers)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := index.RestartsByTarget().AddTo(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- store.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	if !store.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	return store
}

// TestRestartsOfAWorkloadCostTheSameInALargeCluster checks that the lookup of a workload's
// ScheduledRestarts uses an index, so that it takes no longer with a hundred times as many objects.
func TestRestartsOfAWorkloadCostTheSameInALargeCluster(t *testing.T) {
	d := workload.Deployment.New()
	d.SetNamespace("shop")
	d.SetName("web-7")
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-7"}}}
	event := func(restarts int) func() {
		find := restartsOf(cacheOf(t, restarts), workload.Deployment)
		if diff := cmp.Diff(want, find(t.Context(), d)); diff != "" {
			t.Fatalf("among %d, those of the workload (-want +got):\n%s", restarts, diff)
		}
		return func() { find(t.Context(), d) }
	}
	cost.Same(t, "an event of a workload", event(50), event(5_000))
}
