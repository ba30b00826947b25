// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// newTeller returns a reconciler of 20 ConfigMaps in each of two namespaces, and the recorder of
// its events.
func newTeller(s *Shares) (*Reconciler[reconcile.Request], *events.FakeRecorder) {
	cache := fake.NewClientBuilder()
	for i := range 20 {
		for _, namespace := range []string{"mallory", "alice"} {
			cache.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("c", i), UID: "1"}})
		}
	}
	recorder := events.NewFakeRecorder(100)
	return &Reconciler[reconcile.Request]{
		inner:  reconcile.Func(func(context.Context, reconcile.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }),
		shares: s, cache: cache.Build(), recorder: recorder,
		of: Controller[reconcile.Request]{
			NamespaceOf: OfRequest,
			ObjectOf: func(r reconcile.Request) client.Object {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
			},
		},
	}, recorder
}

// TestDeferredNamespaceHasAnEvent checks that a namespace with deferred reconciles gets one event
// in ten minutes, regardless of the number of its objects, and even if the first deferred object no
// longer exists. No event may be recorded in other namespaces.
func TestDeferredNamespaceHasAnEvent(t *testing.T) {
	s, clock := testShares(Limits{PerSecond: 2, Burst: 10})
	r, recorder := newTeller(s)
	reconcileAll := func() {
		t.Helper()
		for _, namespace := range []string{"mallory", "alice"} {
			for i := range 20 {
				request := reconcile.Request{}
				request.Namespace, request.Name = namespace, fmt.Sprint("c", (i+19)%20)
				if i == 0 {
					request.Name = "gone"
				}
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	usedUp := func() {
		for range 20_000 {
			s.charge("mallory")
		}
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Second, 0}, {9 * time.Minute, 0}, {time.Minute, 1}, {time.Minute, 0}, {-time.Hour, 1}} {
		clock.SetTime(clock.Now().Add(step.after))
		usedUp()
		reconcileAll()
		reconcileAll()
		if n := len(recorder.Events); n != step.want {
			t.Fatalf("%s later there are %d events, want %d", step.after, n, step.want)
		}
		for range step.want {
			if event := <-recorder.Events; !strings.Contains(event, "RequestsUsedUp") || !strings.Contains(event, "2 per second, 10 at once") {
				t.Errorf("the event is %q", event)
			}
		}
	}
}
