// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// added is a queue that records the requests added to it.
type added struct {
	queue
	names []string
}

func (q *added) AddAfter(r ctrl.Request, _ time.Duration) { q.names = append(q.names, r.String()) }

func TestPodEvents(t *testing.T) {
	web := pod("a", "1")
	for _, tt := range []struct {
		name     string
		old, new *corev1.Pod
		want     []string
	}{
		{name: "appears", new: web, want: []string{"shop/web"}},
		{name: "appears ended", new: pod("a", "1", phase(corev1.PodFailed))},
		{name: "appears without an owner", new: pod("a", "1", orphaned)},
		{name: "appears, of a StatefulSet", new: pod("a", "1", ownedBy("apps/v1", "StatefulSet", "web"))},
		{name: "appears, of another group's ReplicaSet", new: pod("a", "1", ownedBy("example.com/v1", "ReplicaSet", "web"))},
		{name: "begins to run", old: pod("a", "1", phase(corev1.PodPending)), new: web},
		{name: "ends", old: web, new: pod("a", "1", phase(corev1.PodSucceeded)), want: []string{"shop/web"}},
		{name: "is deleted", old: web, new: pod("a", "1", terminating), want: []string{"shop/web"}},
		{name: "ends after its deletion", old: pod("a", "1", terminating), new: pod("a", "1", terminating, phase(corev1.PodSucceeded))},
		{name: "is released", old: web, new: pod("a", "1", orphaned), want: []string{"shop/web"}},
		{name: "is adopted", old: pod("a", "1", orphaned), new: web, want: []string{"shop/web"}},
		{name: "changes owner", old: web, new: pod("a", "2", ownedBy("apps/v1", "ReplicaSet", "api")), want: []string{"shop/web", "shop/api"}},
		{name: "is gone", old: web, want: []string{"shop/web"}},
		{name: "is gone after its deletion", old: pod("a", "1", terminating)},
	} {
		q := &added{}
		switch {
		case tt.old == nil:
			podEvents.Create(context.Background(), event.CreateEvent{Object: tt.new}, q)
		case tt.new == nil:
			podEvents.Delete(context.Background(), event.DeleteEvent{Object: tt.old}, q)
		default:
			podEvents.Update(context.Background(), event.UpdateEvent{ObjectOld: tt.old, ObjectNew: tt.new}, q)
		}
		if diff := cmp.Diff(tt.want, q.names); diff != "" {
			t.Errorf("%s: queued (-want +got):\n%s", tt.name, diff)
		}
	}

	// While the watch is disconnected, a pod and its ReplicaSet may both be replaced by objects
	// with the same names.
	q := &added{}
	podEvents.Update(context.Background(), event.UpdateEvent{ObjectOld: web, ObjectNew: pod("a", "2")}, q)
	if !slices.Contains(q.names, "shop/web") {
		t.Errorf("another ReplicaSet of the name: queued %v", q.names)
	}
}

func TestReplicaSetChanges(t *testing.T) {
	rs := func(labels map[string]string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "1", Labels: labels}}
	}
	counted := map[string]string{Label: "3"}
	for _, tt := range []struct {
		name     string
		old, new map[string]string
		want     bool
	}{
		{name: "nothing", old: counted, new: counted},
		{name: "another label", old: counted, new: map[string]string{Label: "3", "app": "web"}},
		{name: "taken off", old: counted, want: true},
		{name: "another value", old: counted, new: map[string]string{Label: "4"}, want: true},
		{name: "empty instead of none", new: map[string]string{Label: ""}, want: true},
	} {
		was, is := rs(tt.old), rs(tt.new)
		is.Status.Replicas = 9
		if got := replicaSetChanges.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tt.want {
			t.Errorf("%s: let through: %t, want %t", tt.name, got, tt.want)
		}
		is.UID = "2"
		if !replicaSetChanges.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
			t.Errorf("%s: another of that name is not let through", tt.name)
		}
	}
	if !replicaSetChanges.Create(event.CreateEvent{Object: rs(nil)}) {
		t.Error("a new one is not let through")
	}
	if replicaSetChanges.Delete(event.DeleteEvent{Object: rs(nil)}) {
		t.Error("a deletion is let through")
	}
}
