// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/optional"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/kube/retry"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/scale"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// SetupWithManager adds the controller "scheduled-restart" to the manager. The manager's cache must
// already have the indexes and informers that the definition declares.
func SetupWithManager(mgr ctrl.Manager, options Options, c clock.Clock) error {
	shared, ok := mgr.(interface {
		PodsByWorkload() *podcache.Workloads
		Reads(namespace string) bool
	})
	if !ok {
		return fmt.Errorf("scheduled restarts: a %T does not look at pods", mgr)
	}
	r, err := newReconciler(connections{
		client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), cache: mgr.GetCache(), pods: shared.PodsByWorkload(), scales: scale.NewReader(mgr.GetClient(), c),
		freezes: freeze.NewReader(mgr, c), recorder: mgr.GetEventRecorder("tidekeeper"), registry: ctrlmetrics.Registry, clock: c, wakeups: wakeup.New[reconcile.Request](c),
	}, options)
	if err != nil {
		return fmt.Errorf("scheduled restarts: %w", err)
	}
	if err := r.gatherer.configs.follow(mgr); err != nil {
		return fmt.Errorf("scheduled restarts: %w", err)
	}
	builder := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		Watches(&tidekeeperv1.ScheduledRestart{}, follow(r.gatherer.order)).
		WatchesRawSource(r.wakeups).
		WatchesRawSource(optional.Changes(mgr.GetCache(), restartsOfKind(mgr.GetCache())))
	if r.gatherer.freezes.Watched() {
		builder.Watches(&tidekeeperv1.Freeze{}, handler.EnqueueRequestsFromMapFunc(waiting(mgr.GetCache())), ctrlbuilder.WithPredicates(predicate.GenerationChangedPredicate{}))
		read := predicate.NewPredicateFuncs(func(namespace client.Object) bool { return shared.Reads(namespace.GetName()) })
		builder.Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(waiting(mgr.GetCache())), ctrlbuilder.WithPredicates(read, predicate.LabelChangedPredicate{}))
	}
	for _, kind := range workload.Kinds {
		builder.Watches(kind.New(), handler.EnqueueRequestsFromMapFunc(restartsOf(mgr.GetCache(), kind)))
	}
	if err := fairness.Complete(mgr, builder, fairness.Controller[reconcile.Request]{
		Options: controller.Options{
			MaxConcurrentReconciles: options.Concurrency, RateLimiter: retry.Limiter[reconcile.Request](), LogConstructor: logOf(mgr.GetLogger()),
		},
		NamespaceOf: fairness.OfRequest,
		ObjectOf: func(r reconcile.Request) client.Object {
			return &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		},
		Deferred: r.deferred,
	}, retry.Conflicts(r)); err != nil {
		return fmt.Errorf("scheduled restarts: %w", err)
	}
	return nil
}

// logOf returns a function that returns a logger for a reconcile request, with the name of the
// ScheduledRestart.
func logOf(log logr.Logger) func(*reconcile.Request) logr.Logger {
	log = log.WithValues("controller", controllerName)
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return log
		}
		return log.WithValues("ScheduledRestart", klog.KRef(request.Namespace, request.Name), "namespace", request.Namespace, "name", request.Name)
	}
}

// restartsOf returns a function that maps a workload to requests for the ScheduledRestarts that
// target it. The reader must be the cache itself, because the manager's client would block the
// informer's goroutine until the cache shows all writes of the manager.
func restartsOf(reader client.Reader, kind *workload.Kind) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		key := index.TargetKey(kind.Ref(object.GetName()))
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := reader.List(ctx, list, client.InNamespace(object.GetNamespace()), client.MatchingFields{index.RestartTarget: key}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the ScheduledRestarts of a workload", "kind", kind.Kind, "workload", klog.KObj(object))
			return nil
		}
		return requestsFor(list.Items)
	}
}

// restartsOfKind returns a function that maps a kind to requests for the ScheduledRestarts that
// target objects of that kind.
func restartsOfKind(reader client.Reader) func(context.Context, schema.GroupVersionKind) []reconcile.Request {
	return func(ctx context.Context, gvk schema.GroupVersionKind) []reconcile.Request {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the ScheduledRestarts of a kind", "kind", gvk)
			return nil
		}
		return requestsFor(slices.DeleteFunc(list.Items, func(r tidekeeperv1.ScheduledRestart) bool {
			ref := decision.TargetRef(r.Status.Active, &r.Spec)
			return ref.GetAPIVersion() != gvk.GroupVersion().String() || ref.Kind != gvk.Kind
		}))
	}
}

// waiting returns a function that maps a Freeze or a Namespace to requests for the
// ScheduledRestarts whose due restarts are blocked, since the event may unblock them. Other
// ScheduledRestarts read the freezes when their restarts are due.
func waiting(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, reason := range tidekeeperv1.WaitReasons {
			list := &tidekeeperv1.ScheduledRestartList{}
			options := []client.ListOption{client.MatchingFields{index.RestartWaits: reason}, client.UnsafeDisableDeepCopy}
			if _, ok := object.(*corev1.Namespace); ok {
				options = append(options, client.InNamespace(object.GetName()))
			}
			if err := reader.List(ctx, list, options...); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot list the ScheduledRestarts that wait", "reason", reason)
				return nil
			}
			requests = append(requests, requestsFor(list.Items)...)
		}
		return requests
	}
}

func requestsFor(restarts []tidekeeperv1.ScheduledRestart) []reconcile.Request {
	requests := make([]reconcile.Request, len(restarts))
	for i := range restarts {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&restarts[i])}
	}
	return requests
}
