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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	sandbox "tidekeeper.dev/tidekeeper/sandbox/client"
)

// Apply creates an object and deletes it when the test ends. If the test has failed, the test log
// shows the object's last state. If no running manager would remove the object's finalizer, Apply
// removes the finalizer; if a running manager does not remove its own finalizer, the test fails.
func (c *Cluster) Apply(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			t.Log(c.explain(ctx, o))
		}
		c.Delete(t, o)
		left := func() bool { return c.Get(ctx, client.ObjectKeyFromObject(o), o) == nil && len(o.GetFinalizers()) > 0 }
		responsible := c.finalizing()
		patience := 5 * time.Second
		if responsible != nil {
			patience = Patience
		}
		gone := sandbox.Wait(ctx, patience, "no finalizer is left", func() error {
			if left() {
				return fmt.Errorf("there are %v", o.GetFinalizers())
			}
			return nil
		})
		if gone != nil && left() {
			if responsible != nil && responsible.Running() && ours(o) {
				t.Errorf("%T %s was deleted, but the running manager did not remove the finalizers %v within %s", o, o.GetName(), o.GetFinalizers(), patience)
			}
			if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
				t.Errorf("remove the finalizers of %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// ours reports whether an object has a finalizer that Tidekeeper's manager sets.
func ours(o client.Object) bool {
	return slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, "tidekeeper.dev/") })
}

// Delete deletes an object if it exists. It also works in a cleanup.
func (c *Cluster) Delete(t testing.TB, o client.Object) {
	t.Helper()
	// In a cleanup, the test's context has already been cancelled.
	if err := client.IgnoreNotFound(c.Client.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
		t.Errorf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// Node returns a Node object with only a name, for reading, patching or deleting a node.
func Node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Pool returns a NodePool object with only a name, to be filled in, read or deleted.
func Pool(name string) *tidekeeperv1.NodePool {
	return &tidekeeperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Deployment returns a Deployment whose pods have the given spec, and the label app with the
// Deployment's name as its value.
func Deployment(name string, replicas int32, spec corev1.PodSpec) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// App is the spec of a pod with a single container.
var App = corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}}

// ScheduledRestart returns a ScheduledRestart object in the namespace default with only a name, to
// be filled in, read or deleted.
func ScheduledRestart(name string) *tidekeeperv1.ScheduledRestart {
	return &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
}

// RequestRestart requests a restart for the given time, and returns the time in whole seconds,
// which is the restart's scheduled time (tick).
func (c *Cluster) RequestRestart(t testing.TB, r *tidekeeperv1.ScheduledRestart, tick time.Time) time.Time {
	t.Helper()
	tick = tick.Truncate(time.Second).UTC()
	c.Change(t, r, func() {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, tidekeeperv1.RestartNowAnnotation, tick.Format(time.RFC3339))
	})
	return tick
}

// Refresh reads an object from the API server into `o`.
func (c *Cluster) Refresh(t testing.TB, o client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatalf("get %T %s: %v", o, o.GetName(), err)
	}
}

// Change applies the given function to an object, and sends the difference in a single merge patch.
func (c *Cluster) Change(t testing.TB, o client.Object, change func()) {
	t.Helper()
	patch := c.beforeChange(t, o)
	change()
	if err := c.Patch(t.Context(), o, patch); err != nil {
		t.Fatalf("patch %T %s: %v", o, o.GetName(), err)
	}
}

// beforeChange refreshes an object, and returns a merge patch relative to the refreshed state.
func (c *Cluster) beforeChange(t testing.TB, o client.Object) client.Patch {
	t.Helper()
	c.Refresh(t, o)
	return client.MergeFrom(o.DeepCopyObject().(client.Object))
}

// ChangeStatus is [Cluster.Change] for an object's status. Unlike an update, the patch does not
// conflict with concurrent writes of a kubelet or a controller.
func (c *Cluster) ChangeStatus(t testing.TB, o client.Object, change func()) {
	t.Helper()
	patch := c.beforeChange(t, o)
	change()
	if err := c.Status().Patch(t.Context(), o, patch); err != nil {
		t.Fatalf("patch the status of %T %s: %v", o, o.GetName(), err)
	}
}

// Events returns the manager's events about an object, formatted as "Type Reason: note".
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

// EventuallyEvent waits for an event about an object that begins with the given string.
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
