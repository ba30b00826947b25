// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionresponder

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/evictionresponder/decision"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/kube/leadership"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/kube/retry"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
	"tidekeeper.dev/tidekeeper/internal/rescue/requests"
)

// concurrency is the maximum number of Evictions that are reconciled at the same time.
const concurrency = 8

// SetupWithManager adds the controller "eviction-responder" to the manager.
func SetupWithManager(mgr ctrl.Manager, c clock.Clock) error {
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("eviction responder: register metrics: %w", err)
	}
	r := &reconciler{
		client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), clock: c, wakeups: wakeup.New[reconcile.Request](c), metrics: m,
		requests: requests.New(mgr.GetClient(), requests.Serves(mgr), "eviction", tidekeeperv1.EvictionResponderLabel),
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&lifecyclev1alpha1.Eviction{}).
		WatchesRawSource(r.wakeups).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(evictionsOfPod(mgr.GetCache())), ctrlbuilder.WithPredicates(ends))
	if r.requests.Served() {
		b.Watches(&tidekeeperv1.ScheduledRestart{}, handler.EnqueueRequestsFromMapFunc(evictionsOfRestart(mgr.GetCache())),
			ctrlbuilder.WithPredicates(predicate.NewPredicateFuncs(r.requests.IsRequest)))
	}
	if err := fairness.Complete(mgr, b, fairness.Controller[reconcile.Request]{
		Options:     controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: retry.Limiter[reconcile.Request]()},
		NamespaceOf: fairness.OfRequest,
		ObjectOf: func(r reconcile.Request) client.Object {
			return &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		},
	}, retry.Conflicts(r)); err != nil {
		return fmt.Errorf("eviction responder: %w", err)
	}
	return leadership.OnElected(mgr, func(ctx context.Context) {
		if err := mgr.GetCache().List(ctx, &lifecyclev1alpha1.EvictionList{}, client.Limit(1)); meta.IsNoMatchError(err) {
			mgr.GetLogger().Info("The cluster does not serve Evictions: the controller is idle until it does",
				"controller", Name, "groupVersion", lifecyclev1alpha1.SchemeGroupVersion)
		}
	})
}

// ends is a predicate for the events of pods. It passes only the deletion of a pod, and the update
// with which the pod's phase becomes Succeeded or Failed.
var ends = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, too := e.ObjectNew.(*corev1.Pod)
		return ok && too && !pods.IsTerminal(before) && pods.IsTerminal(after)
	},
}

// evictionsOfPod returns a function that maps a pod to the Evictions that target it. The reader
// must be the cache itself, because the manager's client would block the informer's goroutine until
// the cache shows all writes of the manager.
func evictionsOfPod(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, pod client.Object) []reconcile.Request {
		return requestsFor(ctx, reader, pod.GetNamespace(), func(e *lifecyclev1alpha1.Eviction) bool {
			return e.Spec.Target.Pod != nil && e.Spec.Target.Pod.Name == pod.GetName()
		})
	}
}

// evictionsOfRestart returns a function that maps a ScheduledRestart of this controller to the
// Evictions that may wait for its restart. The function adds a request with the name of the
// ScheduledRestart, so that [reconciler.sweep] runs for the namespace even if the namespace has no
// Eviction any more.
func evictionsOfRestart(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, restart client.Object) []reconcile.Request {
		waiting := requestsFor(ctx, reader, restart.GetNamespace(), func(e *lifecyclev1alpha1.Eviction) bool { return decision.Entry(e) != nil })
		return append(waiting, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(restart)})
	}
}

// requestsFor returns requests for the cached Evictions of a namespace for which `selects` returns
// true.
func requestsFor(ctx context.Context, reader client.Reader, namespace string, selects func(*lifecyclev1alpha1.Eviction) bool) []reconcile.Request {
	evictions, err := evictionsIn(ctx, reader, namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the Evictions that may have to be reconciled", "namespace", namespace)
		return nil
	}
	var selected []reconcile.Request
	for i := range evictions {
		if selects(&evictions[i]) {
			selected = append(selected, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&evictions[i])})
		}
	}
	return selected
}
