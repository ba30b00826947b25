// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
	"tidekeeper.dev/tidekeeper/internal/restart/budget"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

var (
	testStart = time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC)
	testKey   = types.NamespacedName{Namespace: "shop", Name: "web"}
)

// bench is a reconciler for a single ScheduledRestart, whose restart is in progress and never
// completes.
type bench struct {
	*reconciler
	now    *clocktesting.FakeClock
	events *events.FakeRecorder
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	// patchStatus, patchTarget and get are the errors that the API server returns for these
	// requests. They are nil if the request succeeds.
	patchStatus, patchTarget, get error
	// refuses reports whether the API server rejects the given status. If it is nil, the API server
	// accepts every status.
	refuses func(*tidekeeperv1.ScheduledRestartStatus) bool
	// statusWrites counts the attempted status writes.
	statusWrites int
}

func newBench(t *testing.T, change func(*tidekeeperv1.ScheduledRestart, *appsv1.Deployment)) *bench {
	t.Helper()
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, tidekeeperv1.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	restart := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Namespace: testKey.Namespace, Name: testKey.Name, UID: "1", Generation: 1},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "web"}, Schedule: "0 3 * * *", TimeZone: "UTC",
			ProgressDeadlineSeconds: 86400, StartingDeadlineSeconds: 600, FailureLimit: 3, HistoryLimit: 10,
		},
		Status: tidekeeperv1.ScheduledRestartStatus{ObservedGeneration: 1, Active: &tidekeeperv1.ActiveRestart{
			ScheduledTime: metav1.Time{Time: testStart}, StartedTime: metav1.Time{Time: testStart}, Trigger: tidekeeperv1.TriggerSchedule, TargetUID: "2",
		}},
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: testKey.Namespace, Name: "web", UID: "2", Generation: 2}}
	deployment.Spec.Replicas = new(int32(1))
	deployment.Spec.Template.Annotations = map[string]string{tidekeeperv1.RestartedAtAnnotation: workload.FormatTime(testStart)}
	deployment.Status.ObservedGeneration = 2
	if change != nil {
		change(restart, deployment)
	}
	b := &bench{now: clocktesting.NewFakeClock(testStart.Add(time.Second)), events: events.NewFakeRecorder(1000)}
	server := fake.NewClientBuilder().WithScheme(all).WithObjects(restart, deployment).WithStatusSubresource(restart).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*appsv1.Deployment); ok && b.get != nil {
				return b.get
			}
			return c.Get(ctx, key, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if b.patchTarget != nil {
				return b.patchTarget
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			b.statusWrites++
			if status := o.(*tidekeeperv1.ScheduledRestart).Status; b.refuses != nil && b.refuses(&status) {
				return errTooLarge
			}
			if b.patchStatus != nil {
				return b.patchStatus
			}
			return c.SubResource(name).Patch(ctx, o, patch, opts...)
		},
	}).Build()
	var err error
	if b.reconciler, err = newReconciler(connections{
		client: server, apiReader: server, cache: server, recorder: b.events, freezes: &freeze.Reader{}, registry: prometheus.NewRegistry(),
		wakeups: wakeup.New[reconcile.Request](b.now), clock: b.now,
	}, Options{MaxConcurrent: 2, NamespaceShare: 100, SlotAge: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(b.queue.ShutDown)
	if err := b.wakeups.Start(t.Context(), b.queue); err != nil {
		t.Fatal(err)
	}
	return b
}

// reconcile reconciles the ScheduledRestart when the given time has passed since the start of its
// restart.
func (b *bench) reconcile(t *testing.T, after time.Duration) error {
	t.Helper()
	b.now.SetTime(testStart.Add(after))
	_, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: testKey})
	return err
}

var errTooLarge = apierrors.NewInternalError(errors.New("etcdserver: request is too large"))

// TestSlotAgeDependsOnTheClockOnly checks that a slot is released at its maximum age even if the
// status cannot be written or the target cannot be read.
func TestSlotAgeDependsOnTheClockOnly(t *testing.T) {
	for name, broken := range map[string]func(*bench){
		"the status is refused":     func(b *bench) { b.patchStatus = errTooLarge },
		"the target cannot be read": func(b *bench) { b.get = apierrors.NewInternalError(errors.New("replicas is null")) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			broken(b)
			if err := b.reconcile(t, time.Second); err == nil {
				t.Fatal("nothing is broken")
			}
			if !b.slots.budget.Has(testKey) {
				t.Fatal("a restart under way has no slot")
			}
			b.now.SetTime(testStart.Add(b.slots.age))
			if woken, _ := b.queue.Get(); woken.NamespacedName != testKey {
				t.Fatalf("woken: %v", woken)
			}
			for i := range 3 {
				if err := b.reconcile(t, b.slots.age+time.Duration(i)*time.Minute); err == nil {
					t.Error("nothing is broken")
				}
				if used, _, outlived := b.slots.budget.Usage(); used != 0 || outlived != 1 {
					t.Errorf("%d slots are used, and %d outlived; want 0 and 1", used, outlived)
				}
			}
			// The next leader must not take the expired slot again.
			next := newBench(t, nil)
			broken(next)
			next.now.SetTime(testStart.Add(b.slots.age))
			if err := next.lead(t.Context()); err != nil {
				t.Fatal(err)
			}
			if next.slots.budget.Has(testKey) {
				t.Error("the next leader gave it a slot")
			}
		})
	}
}

// TestARefusedTickGivesItsSlotBack checks that a restart whose tick the API server rejects releases
// its slot at the maximum age, so that another restart can start, and that the tick is recorded as
// missed after its deadline. The condition Ready and the record must say why it was rejected.
func TestARefusedTickGivesItsSlotBack(t *testing.T) {
	b := newBench(t, func(restart *tidekeeperv1.ScheduledRestart, deployment *appsv1.Deployment) {
		restart.Spec.StartingDeadlineSeconds = 3600
		deployment.Spec.Template.Annotations = nil
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		deployment.Status.UpdatedReplicas, deployment.Status.Replicas, deployment.Status.AvailableReplicas = 1, 1, 1
	})
	b.slots.budget = budget.New(1, 100)
	b.patchTarget = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("a policy says no"))
	neighbour := types.NamespacedName{Namespace: "quiet", Name: "api"}
	for after := time.Second; after < b.slots.age; after += 30 * time.Second {
		if err := b.reconcile(t, after); !apierrors.IsForbidden(err) {
			t.Fatalf("after %s: %v", after, err)
		}
		if b.slots.budget.Take(neighbour, b.now.Now()) {
			t.Fatalf("the neighbour has a slot after %s", after)
		}
	}
	restart := &tidekeeperv1.ScheduledRestart{}
	const why = `the API server refused it: patch Deployment web: deployments "web" is forbidden: a policy says no`
	read := func() {
		t.Helper()
		if err := b.client.Get(t.Context(), testKey, restart); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if ready := meta.FindStatusCondition(restart.Status.Conditions, tidekeeperv1.ConditionReady); ready == nil || !strings.HasSuffix(ready.Message, "; "+why) {
		t.Errorf("the condition is %+v, want that it says %q", ready, why)
	}
	if err := b.reconcile(t, b.slots.age+time.Second); err != nil {
		t.Fatal(err)
	}
	if !b.slots.budget.Take(neighbour, b.now.Now()) {
		t.Error("the neighbour has no slot when the time of the refused one is over")
	}
	if err := b.reconcile(t, 61*time.Minute); err != nil {
		t.Fatal(err)
	}
	read()
	if h := restart.Status.History; len(h) != 1 || h[0].Outcome != tidekeeperv1.OutcomeMissed || h[0].Reason != tidekeeperv1.ReasonBudgetExhausted || !strings.HasSuffix(h[0].Message, "; before that, "+why) {
		t.Errorf("history: %+v", h)
	}
}

// TestARefusedStatusIsTriedSeldom checks that a status that the API server rejects is written at
// most 7 times in a minute, regardless of the number of reconciles, and that the rejection is
// reported by an event.
func TestARefusedStatusIsTriedSeldom(t *testing.T) {
	b := newBench(t, nil)
	b.patchStatus = errTooLarge
	for i := range 600 {
		_ = b.reconcile(t, time.Second+time.Duration(i)*100*time.Millisecond)
	}
	if b.statusWrites == 0 || b.statusWrites > 7 {
		t.Errorf("%d writes in a minute, want at most 7", b.statusWrites)
	}
	select {
	case event := <-b.events.Events:
		if !strings.Contains(event, "ReconcileFailed") || !strings.Contains(event, "too large") {
			t.Error(event)
		}
	default:
		t.Error("there is no event")
	}
	b.patchStatus = nil
	if err := b.reconcile(t, 2*time.Minute); err != nil {
		t.Error(err)
	}
	if before := b.statusWrites; b.reconcile(t, 2*time.Minute) != nil || b.statusWrites > before {
		t.Error("it is written again")
	}
}

// TestARecordIsWrittenWithoutItsMessage checks that a history entry is written without its message
// if the API server would otherwise reject it, so that the restart can end.
func TestARecordIsWrittenWithoutItsMessage(t *testing.T) {
	b := newBench(t, func(restart *tidekeeperv1.ScheduledRestart, _ *appsv1.Deployment) {
		restart.Spec.ProgressDeadlineSeconds = 60
		restart.Status.History = []tidekeeperv1.RestartRecord{{Outcome: tidekeeperv1.OutcomeMissed, Message: "earlier"}}
	})
	b.refuses = func(status *tidekeeperv1.ScheduledRestartStatus) bool {
		return len(status.History) > 0 && status.History[0].Message != ""
	}
	if err := b.reconcile(t, time.Hour); err != nil {
		t.Fatal(err)
	}
	restart := &tidekeeperv1.ScheduledRestart{}
	if err := b.client.Get(t.Context(), testKey, restart); err != nil {
		t.Fatal(err)
	}
	if s := &restart.Status; s.Active != nil || len(s.History) != 1 || s.History[0].Reason != tidekeeperv1.ReasonTimeout || b.slots.budget.Has(testKey) {
		t.Errorf("status %+v, with a slot: %t; want a record of the timeout, and no slot", s, b.slots.budget.Has(testKey))
	}
}

// TestAnErrorOfReadingHasAnEvent checks that a read error is reported by an event.
func TestAnErrorOfReadingHasAnEvent(t *testing.T) {
	b := newBench(t, nil)
	b.get = apierrors.NewInternalError(errors.New("replicas is null"))
	if err := b.reconcile(t, time.Second); err == nil {
		t.Fatal("nothing is broken")
	}
	select {
	case event := <-b.events.Events:
		if !strings.Contains(event, "ReconcileFailed") || !strings.Contains(event, "replicas is null") {
			t.Error(event)
		}
	default:
		t.Error("there is no event")
	}
}
