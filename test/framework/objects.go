// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Apply creates an object, and deletes it when the test ends. A finalizer that
// no manager sees to any more is then taken off.
func (c *Cluster) Apply(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	t.Cleanup(func() {
		c.Delete(t, o)
		ctx := context.WithoutCancel(t.Context())
		left := func() bool { return c.Get(ctx, client.ObjectKeyFromObject(o), o) == nil && len(o.GetFinalizers()) > 0 }
		for deadline := time.Now().Add(5 * time.Second); left() && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond)
		}
		if left() {
			if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
				t.Errorf("take the finalizers off %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// Delete deletes an object, if it is there.
func (c *Cluster) Delete(t testing.TB, o client.Object) {
	t.Helper()
	// A cleanup runs when the context of the test has ended.
	if err := client.IgnoreNotFound(c.Client.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
		t.Errorf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// Node returns a reference to a node.
func Node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Pool returns a reference to a node pool.
func Pool(name string) *tidekeeperv1.NodePool {
	return &tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Refresh reads an object anew.
func (c *Cluster) Refresh(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatalf("get %T %s: %v", o, o.GetName(), err)
	}
}

// Change changes an object with one merge patch.
func (c *Cluster) Change(t testing.TB, o client.Object, change func()) {
	t.Helper()
	c.Refresh(t, o)
	before := o.DeepCopyObject().(client.Object)
	change()
	if err := c.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatalf("patch %T %s: %v", o, o.GetName(), err)
	}
}

// Events returns the manager's events about an object as "Type Reason: note".
func (c *Cluster) Events(t testing.TB, kind, name string) []string {
	t.Helper()
	list := &corev1.EventList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.ReportingController == "tidekeeper" {
			events = append(events, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
	}
	return events
}

// EventuallyEvent waits for an event about an object that begins so.
func (c *Cluster) EventuallyEvent(t testing.TB, kind, name, want string) {
	t.Helper()
	Eventually(t, kind+" "+name+" has an event", func() error {
		events := c.Events(t, kind, name)
		if !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, want) }) {
			return fmt.Errorf("want %q, got %q", want, events)
		}
		return nil
	})
}
