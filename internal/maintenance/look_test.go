// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/index"
)

// drainOfMany is the drain of a node with one pod each of many Deployments. The API server refuses to
// create ScheduledRestarts in the namespace "hostile", and already has those of the namespace "edited",
// unlike the cache.
type drainOfMany struct {
	*drainReconciler
	clock *clocktesting.FakePassiveClock
	mu    sync.Mutex
	// reads counts the reads from the API server, by the Go type that is read. requested and evicted
	// count the requested restarts and the evicted pods by namespace.
	reads, requested, evicted map[string]int
}

// newDrainOfMany returns a drain. singles and replicated map namespaces to numbers of Deployments of
// one pod, and of two pods of which the other is on another node.
func newDrainOfMany(t *testing.T, singles, replicated map[string]int) *drainOfMany {
	t.Helper()
	noon := time.Date(2026, time.June, 9, 12, 0, 0, 0, time.UTC)
	d := &drainOfMany{clock: clocktesting.NewFakePassiveClock(noon), reads: map[string]int{}, requested: map[string]int{}, evicted: map[string]int{}}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(tidekeeperv1.AddToScheme(scheme))
	objects := []client.Object{
		&tidekeeperv1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "m"}, Spec: tidekeeperv1.NodeMaintenanceSpec{SingleReplicas: tidekeeperv1.SingleReplicasRestart}},
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", Annotations: map[string]string{tidekeeperv1.CordonedForMaintenanceAnnotation: "m"}},
			Spec:       corev1.NodeSpec{Unschedulable: true},
		},
	}
	for replicas, byNamespace := range map[int32]map[string]int{1: singles, 2: replicated} {
		for namespace, count := range byNamespace {
			for i := range count {
				objects = append(objects, objectsOf(namespace, fmt.Sprintf("app%d-%d", replicas, i), replicas)...)
			}
		}
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, index.PodNode, index.PodsByNode().Values).Build()
	live := interceptor.NewClient(cached, interceptor.Funcs{
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			d.reads[fmt.Sprintf("%T", o)]++
			return inner.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			d.reads[fmt.Sprintf("%T", list)]++
			return inner.List(ctx, list, opts...)
		},
	})
	writes := interceptor.NewClient(cached, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			switch d.requested[o.GetNamespace()]++; o.GetNamespace() {
			case "hostile":
				return errors.New("exceeded quota")
			case "edited":
				return apierrors.NewAlreadyExists(schema.GroupResource{Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts"}, o.GetName())
			}
			return nil
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Object, _ ...client.SubResourceCreateOption) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.evicted[o.GetNamespace()]++
			return nil
		},
	})
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	known := newDrains(d.clock)
	d.drainReconciler = &drainReconciler{
		client: writes, apiReader: live, drains: known, restarts: newRestarts(writes, func(string) bool { return true }, d.clock), freezes: &freeze.Reader{}, metrics: m,
		clock: d.clock, tell: func(string) {},
	}
	status := &tidekeeperv1.NodeMaintenanceStatus{Nodes: map[string]tidekeeperv1.NodeProgress{"a": {UID: "1", StartTime: metav1.NewTime(noon)}}}
	known.watch("weekly", status, []string{"a"}, []string{"a"})
	return d
}

// objectsOf returns a Deployment whose pods are ready, and its pod on the node "a".
func objectsOf(namespace, name string, replicas int32) []client.Object {
	return []client.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
			Status: appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name + "-7d9f-x", UID: types.UID(namespace + name + "pod"), Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "7d9f"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-7d9f", UID: "rs", Controller: new(true)}},
			},
			Spec:   corev1.PodSpec{NodeName: "a"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
	}
}

// reconcile reconciles the node, and returns the pause until the next reconcile.
func (d *drainOfMany) reconcile(t *testing.T) time.Duration {
	t.Helper()
	clear(d.reads)
	result, err := d.Reconcile(t.Context(), requestFor("a"))
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// TestReadsOfADrain checks that the number of Deployments on a node does not determine how many
// requests its drain sends, and that the pause after many requests is longer.
func TestReadsOfADrain(t *testing.T) {
	few := newDrainOfMany(t, nil, map[string]int{"shop": 3})
	if got := few.reconcile(t); got != lookInterval {
		t.Errorf("three pods are listed again after %s, want %s", got, lookInterval)
	}
	if few.evicted["shop"] != 3 || few.reads["*v1.Deployment"] != 3 {
		t.Errorf("evicted %v with the reads %v, want 3 of each", few.evicted, few.reads)
	}
	many := newDrainOfMany(t, map[string]int{"hostile": 700}, map[string]int{"shop": 300})
	for i := range 3 {
		pause := many.reconcile(t)
		if got := many.reads["*v1.Deployment"]; got > mostRead+mostConfirmed {
			t.Errorf("reconcile %d read %d Deployments, want at most %d", i, got, mostRead+mostConfirmed)
		}
		if many.reads["*v1.PodList"] > 2 || many.reads["*v1.PodDisruptionBudgetList"] != 2 {
			t.Errorf("reconcile %d: reads %v", i, many.reads)
		}
		if pause < lookPause {
			t.Errorf("the next reconcile follows after %s", pause)
		}
	}
	if got := pauseAfter(500); got <= pauseAfter(10) {
		t.Errorf("the pause after 500 reads is %s, no longer than after 10", got)
	}
}

// TestRefusedRequests checks that a restart that cannot be requested holds back only its own pods, that
// the request is repeated at growing intervals, and that the state names the refusal.
func TestRefusedRequests(t *testing.T) {
	d := newDrainOfMany(t, map[string]int{"hostile": 2}, map[string]int{"shop": 2})
	d.reconcile(t)
	if d.evicted["shop"] != 2 || d.evicted["hostile"] != 0 {
		t.Errorf("evicted %v, want the two pods of shop", d.evicted)
	}
	for range 60 {
		d.clock.SetTime(d.clock.Now().Add(time.Second))
		d.reconcile(t)
	}
	if got := d.requested["hostile"]; got < 6 || got > 14 {
		t.Errorf("%d requests for two Deployments in a minute, want about ten", got)
	}
	state := d.drains.states("weekly")["a"]
	if state.Reason != "RestartFailed" || !strings.Contains(state.Message, "pod hostile/app1-0-7d9f-x (Deployment/app1-0): a restart that moves it cannot be requested") || !strings.Contains(state.Message, "exceeded quota") {
		t.Errorf("the state is %+v", state)
	}
}

// TestRequestOvertaken checks that a ScheduledRestart that has changed since it was read is reported as
// a conflict, which is retried at once, and not as a refusal.
func TestRequestOvertaken(t *testing.T) {
	d := newDrainOfMany(t, map[string]int{"edited": 1}, map[string]int{"shop": 2})
	if _, err := d.Reconcile(t.Context(), requestFor("a")); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	if d.evicted["shop"] != 2 {
		t.Errorf("evicted %v, want the two pods of shop", d.evicted)
	}
	if of, _ := d.drains.look("a"); len(of.notRequested) > 0 {
		t.Errorf("recorded as refused: %v", of.notRequested)
	}
}
