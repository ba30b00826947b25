// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

var gadgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}

func gadget() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gadgets)
	return u
}

// startCache starts a cache in which the test server's kind Gadget is optional.
func startCache(t *testing.T, s *server, changes ...func(*Cache)) *Cache {
	t.Helper()
	http := httptest.NewServer(s)
	t.Cleanup(http.Close)
	scheme := runtime.NewScheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(gadgets, meta.RESTScopeNamespace)
	made, err := NewCache([]Kind{{Object: gadget()}}, true)(&rest.Config{Host: http.URL}, cache.Options{
		Scheme: scheme, Mapper: mapper, ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	made.(*Cache).kinds[gadgets].patience = waitfor.Patience // A stall of the machine is no reason to give up the kind.
	for _, change := range changes {
		change(made.(*Cache))
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- made.Start(ctx) }()
	t.Cleanup(func() {
		// The server keeps a watch open until the kind is removed.
		s.set(func() { s.served = false })
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return made.(*Cache)
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	waitfor.Nil(t, what, func() error {
		if !check() {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestKindComesAndGoes checks that the cache does not wait for an optional kind that is not
// installed. Once the CRD is installed, the kind can be read and watched, even if it appears in
// discovery later. The kind can then be removed and installed again.
func TestKindComesAndGoes(t *testing.T) {
	s := &server{}
	c := startCache(t, s)
	ctx := t.Context()
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync without the kind")
	}
	informer, err := c.GetInformer(ctx, gadget())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 10)
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		name := o.(client.Object).GetName()
		// An object must be readable once a handler has received it.
		if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, gadget()); err != nil {
			t.Errorf("a handler sees %s, which cannot be read: %v", name, err)
		}
		seen <- name
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !registration.HasSynced() || !informer.HasSynced() {
		t.Error("a kind that is not served is waited for")
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[schema.GroupVersionKind]())
	defer queue.ShutDown()
	changes := Changes(c, func(_ context.Context, gvk schema.GroupVersionKind) []schema.GroupVersionKind {
		return []schema.GroupVersionKind{gvk}
	})
	if err := changes.Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	changed := func() {
		t.Helper()
		eventually(t, "the change is queued", func() bool { return queue.Len() == 1 })
		got, _ := queue.Get()
		queue.Done(got)
		if got != gadgets {
			t.Errorf("%s has changed, want %s", got, gadgets)
		}
	}

	for round := range 2 {
		if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "a"}, gadget()); !meta.IsNoMatchError(err) {
			t.Errorf("round %d: read a kind that is not served: %v", round, err)
		}
		name := fmt.Sprint("gadget-", round)
		s.set(func() { s.served, s.names, s.late = true, []string{name}, time.Duration(round)*time.Second })
		if got := <-seen; got != name {
			t.Errorf("round %d: the handler sees %s, want %s", round, got, name)
		}
		changed()
		eventually(t, "the handler has synced", registration.HasSynced)
		if !informer.HasSynced() {
			t.Errorf("round %d: the informer has not synced", round)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gadgets.GroupVersion().WithKind("GadgetList"))
		if err := c.List(ctx, list); err != nil || len(list.Items) != 1 {
			t.Errorf("round %d: listed %d, error %v", round, len(list.Items), err)
		}

		// A failed discovery request must not change whether the kind counts as served.
		s.set(func() { s.broken = true })
		if c.check(ctx) || !c.kinds[gadgets].isRunning() {
			t.Errorf("round %d: a failure is taken for an answer", round)
		}
		s.set(func() { s.broken, s.served = false, false })
		changed()
		if !registration.HasSynced() || !informer.HasSynced() {
			t.Errorf("round %d: a kind that is gone is waited for", round)
		}
	}
}

// TestKindHasSyncedWithItsHandlers checks that HasSynced returns true once the kind's cache is
// complete, even if the channel settled is still open.
func TestKindHasSyncedWithItsHandlers(t *testing.T) {
	checked := make(chan struct{})
	close(checked)
	r := &running{synced: make(chan struct{}), settled: make(chan struct{})}
	k := &kind{checked: checked, running: r}
	if k.HasSynced() {
		t.Error("a kind that is being listed has synced")
	}
	close(r.synced)
	if !k.HasSynced() {
		t.Error("a kind that is complete has not synced")
	}
}

// TestKindIsThere checks that an optional kind that the cluster serves from the start can be read
// as soon as the cache has synced.
func TestKindIsThere(t *testing.T) {
	s := &server{}
	s.set(func() { s.served, s.names = true, []string{"a"} })
	c := startCache(t, s)
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not sync")
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "a"}, gadget()); err != nil {
		t.Error(err)
	}
}

// TestKindThatCannotBeListed checks that a kind whose list requests fail does not delay the sync of
// the other kinds. The kind counts as not served until a list request succeeds.
func TestKindThatCannotBeListed(t *testing.T) {
	s := &server{unlistable: true}
	s.set(func() { s.served, s.names = true, []string{"a"} })
	c := startCache(t, s, func(c *Cache) { c.kinds[gadgets].patience = time.Millisecond })
	informer, err := c.GetInformer(t.Context(), gadget())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 1)
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not sync")
	}
	if !informer.HasSynced() || !registration.HasSynced() {
		t.Error("a kind that cannot be listed is waited for")
	}
	key := client.ObjectKey{Namespace: "shop", Name: "a"}
	if err := c.Get(t.Context(), key, gadget()); !meta.IsNoMatchError(err) {
		t.Errorf("read a kind that cannot be listed: %v", err)
	}
	s.set(func() { s.unlistable = false })
	<-seen
	if err := c.Get(t.Context(), key, gadget()); err != nil {
		t.Error(err)
	}
	eventually(t, "the handler has synced", registration.HasSynced)
}

// TestWatchOfTheCRDIsRefused checks that a manager that has no right to watch the CRD still detects
// its kind.
func TestWatchOfTheCRDIsRefused(t *testing.T) {
	s := &server{forbid: true}
	c := startCache(t, s)
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not sync")
	}
	s.set(func() { s.served, s.names = true, []string{"a"} })
	eventually(t, "the kind is found", c.kinds[gadgets].isRunning)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == 0 {
		t.Error("the watch was not refused")
	}
}

// TestAskedOnlyAfterChanges checks that discovery requests are sent at the start, and later only
// after a CRD has changed or a request has failed.
func TestAskedOnlyAfterChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		wake := make(chan struct{}, 1)
		var checks atomic.Int32
		var silent atomic.Bool
		go follow(ctx, wake, 0, func(context.Context) bool {
			checks.Add(1)
			return !silent.Load()
		})
		defer synctest.Wait()
		defer cancel()
		wants := func(what string, want int) {
			t.Helper()
			time.Sleep(24 * time.Hour) // sleep: in a bubble
			synctest.Wait()
			if got := int(checks.Swap(0)); got != want {
				t.Errorf("%s: asked %d times, want %d", what, got, want)
			}
		}
		wants("at rest", 1)
		wake <- struct{}{}
		wants("after a change", 1+len(rechecks))
		silent.Store(true)
		wake <- struct{}{}
		time.Sleep(3*retryInterval + time.Second) // sleep: in a bubble
		silent.Store(false)
		wants("after no answer", 4+1+len(rechecks))
	})
}

// TestAskedAtAnInterval checks that discovery is polled at pollInterval if CRDs are not watched.
func TestAskedAtAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var checks atomic.Int32
		go follow(ctx, nil, pollInterval, func(context.Context) bool {
			checks.Add(1)
			return true
		})
		time.Sleep(10*pollInterval + time.Second) // sleep: in a bubble
		cancel()
		synctest.Wait()
		if got := checks.Load(); got != 11 {
			t.Errorf("asked %d times, want 11", got)
		}
	})
}
