// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startCache starts a cache and returns a function that stops it.
func startCache(t *testing.T, store cache.Cache) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- store.Start(ctx) }()
	return func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// TestReadOfAKindThatIsNotWatched checks that reading a kind that no controller watches is an
// error, and sends no request to the API server.
func TestReadOfAKindThatIsNotWatched(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the API server was asked for %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	}))
	defer server.Close()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	cfg, options := &rest.Config{Host: server.URL}, cacheOptions(chosenBy(t, "scheduled-restart", "").watches)
	options.Scheme, options.Mapper = scheme, mapperOf(t, scheme)
	store, err := cache.New(cfg, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	defer startCache(t, store)()
	store.WaitForCacheSync(ctx)
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: options.Mapper, Cache: &client.CacheOptions{Reader: store}})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "shop", "web"
	for what, do := range map[string]func() error{
		"get":  func() error { return c.Get(ctx, client.ObjectKeyFromObject(pod), pod) },
		"list": func() error { return c.List(ctx, &corev1.PodList{}) },
	} {
		if err, missing := do(), (*cache.ErrResourceNotCached)(nil); !errors.As(err, &missing) {
			t.Errorf("%s: %v, want that pods are not cached", what, err)
		}
	}
}
