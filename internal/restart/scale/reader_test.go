// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// cluster is an API server that serves only the scale subresource of Widgets, takes a second for
// each response, and counts requests.
type cluster struct {
	client.SubResourceClient
	requests atomic.Int32
	// removed is true if the CRD of the Widgets was deleted.
	removed atomic.Bool
}

func (c *cluster) SubResource(string) client.SubResourceClient { return c }

func (c *cluster) Get(_ context.Context, object, scale client.Object, _ ...client.SubResourceGetOption) error {
	c.requests.Add(1)
	time.Sleep(time.Second) // sleep: uses the synctest clock, so that other goroutines send requests in the meantime
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Kind != "Widget" || c.removed.Load() {
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	}
	return unstructured.SetNestedField(scale.(*unstructured.Unstructured).Object, int64(3), "spec", "replicas")
}

// TestReaderOfKindsThatAreNotServed checks that a namespace whose targets have unserved kinds
// causes at most ten requests per minute, regardless of the number of kinds and reads.
func TestReaderOfKindsThatAreNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		clock := clocktesting.NewFakePassiveClock(time.Now())
		r := NewReader(c, clock)
		read := func(namespace, kind string, served bool) {
			t.Helper()
			var in decision.Input
			if err := r.Read(t.Context(), namespace, tidekeeperv1.TargetRef{APIVersion: "shop.example/v1", Kind: kind, Name: "a"}, &in); err != nil {
				t.Error(err)
			}
			if !in.Polled || in.Unserved == served {
				t.Errorf("%s of %s: %+v, want it to be served: %t", kind, namespace, in, served)
			}
		}
		used := func(want int32, what string) {
			t.Helper()
			if got := c.requests.Swap(0); got != want {
				t.Errorf("%s: %d requests, want %d", what, got, want)
			}
		}

		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { read("mallory", "Foo", false) })
		}
		all.Wait()
		used(1, "a kind that many ask for at once")
		for i := range 100 {
			read("mallory", fmt.Sprint("Foo", i), false)
		}
		used(maxUnserved-1, "a hundred kinds")
		read("alice", "Gadget", false)
		read("alice", "Widget", true)
		read("alice", "Widget", true)
		used(1+3, "another namespace")
		read("mallory", "Widget", true)
		used(1, "a kind that is served, in a namespace that has asked too often")

		clock.SetTime(clock.Now().Add(unservedFor))
		read("mallory", "Foo", false)
		used(1, "a minute later")

		c.removed.Store(true)
		for range 100 {
			read("alice", "Widget", false)
		}
		used(1, "a kind that is served no longer")
		c.removed.Store(false)
		clock.SetTime(clock.Now().Add(unservedFor))
		read("alice", "Widget", true)
		used(2, "it is served again")
	})
}
