// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/kube/retry"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
)

// countDelay is the delay between a change of a Freeze's held-back objects and the reconcile of the
// Freeze, so that one reconcile covers many changes.
const countDelay = time.Second

// SetupWithManager adds the controller "freeze" to the manager.
func SetupWithManager(mgr ctrl.Manager, c clock.Clock) error {
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("freezes: register metrics: %w", err)
	}
	r := &reconciler{
		client: mgr.GetClient(), cache: mgr.GetCache(), recorder: mgr.GetEventRecorder("tidekeeper"),
		wakeups: wakeup.New[reconcile.Request](c), metrics: m, clock: c, known: map[string]lastSeen{},
		countsRestarts: Watched(mgr.GetCache(), &tidekeeperv1.ScheduledRestartList{}),
		countsNodes:    Watched(mgr.GetCache(), &tidekeeperv1.NodePoolList{}),
	}
	builder := ctrl.NewControllerManagedBy(mgr).
		For(&tidekeeperv1.Freeze{}).
		Named("freeze").
		WatchesRawSource(r.wakeups).
		WithOptions(controller.Options{RateLimiter: retry.Limiter[reconcile.Request]()})
	if r.countsRestarts {
		builder.Watches(&corev1.Namespace{}, r.relabeled())
		builder.Watches(&tidekeeperv1.ScheduledRestart{}, r.recount(func(o client.Object) any {
			held := tidekeeperv1.HeldBack{}
			if restart, ok := o.(*tidekeeperv1.ScheduledRestart); ok {
				addHeldBack(&held, restart, period.Period{})
			}
			return held
		}))
	}
	if r.countsNodes {
		builder.Watches(&tidekeeperv1.NodePool{}, r.recount(func(o client.Object) any {
			held := tidekeeperv1.HeldBack{}
			if pool, ok := o.(*tidekeeperv1.NodePool); ok {
				held.Nodes = pool.Status.HeldBackNodes
			}
			return held
		}))
	}
	if err := builder.Complete(retry.Conflicts(r)); err != nil {
		return fmt.Errorf("freezes: %w", err)
	}
	return nil
}

// enqueueInForce enqueues the Freezes in force, which then count what they hold back.
func (r *reconciler) enqueueInForce(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	list := &tidekeeperv1.FreezeList{}
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the freezes in force")
		return
	}
	for i := range list.Items {
		if f := &list.Items[i]; period.Of(f).Contains(r.clock.Now()) {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f)}, countDelay)
		}
	}
}

// relabeled returns a handler that enqueues the Freezes in force when a namespace is created or its
// labels change. The event may arrive after the restarts that a Freeze holds back in that namespace.
func (r *reconciler) relabeled() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if !e.IsInInitialList { // The first reconcile of each Freeze counts after this list.
				r.enqueueInForce(ctx, queue)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				r.enqueueInForce(ctx, queue)
			}
		},
	}
}

// recount returns a handler that enqueues the Freezes in force when the number of restarts or nodes
// that they hold back may have changed. part returns this number for an object. The handler reacts
// to an update that changes the number, and to a deletion if the number was not zero.
func (r *reconciler) recount(part func(client.Object) any) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if part(e.ObjectOld) != part(e.ObjectNew) {
				r.enqueueInForce(ctx, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if part(e.Object) != any(tidekeeperv1.HeldBack{}) {
				r.enqueueInForce(ctx, queue)
			}
		},
	}
}
