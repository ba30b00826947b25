// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache/cacheapi"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/kube/retry"
	"tidekeeper.dev/tidekeeper/internal/kube/wakeup"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
	"tidekeeper.dev/tidekeeper/internal/rescue/requests"
)

// drainWorkers is the maximum number of nodes whose pods are moved at the same time. If a webhook
// does not respond, a node occupies a worker for several seconds.
const drainWorkers = 16

// SetupWithManager adds two controllers to the manager: "node-maintenance" reconciles
// NodeMaintenances, and "node-drain" reconciles the nodes that are being drained.
func SetupWithManager(mgr ctrl.Manager, c clock.Clock) error {
	shared, ok := mgr.(interface{ PodsByWorkload() *podcache.Workloads })
	if !ok {
		return fmt.Errorf("node maintenance: a %T does not look at pods", mgr)
	}
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("node maintenance: register metrics: %w", err)
	}
	known := newDrains(c)
	freezes := freeze.NewReader(mgr, c)
	wakeups := wakeup.New[reconcile.Request](c)
	drainWakeups := wakeup.New[reconcile.Request](c)
	moves := newRestarts(mgr.GetClient(), requests.Serves(mgr), c)
	drainer := &drainReconciler{
		client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), drains: known, restarts: moves, freezes: freezes, metrics: m, clock: c,
		tell: func(name string) { wakeups.Enqueue(requestFor(name)) },
	}
	drainBuilder := ctrl.NewControllerManagedBy(mgr).
		Named("node-drain").
		WatchesRawSource(drainWakeups).
		Watches(&corev1.Pod{}, podChanges(known)).
		WatchesRawSource(budgetChanges(mgr.GetCache(), known)).
		WithOptions(controller.Options{MaxConcurrentReconciles: drainWorkers, RateLimiter: retry.Limiter[reconcile.Request]()})
	if moves.Served() {
		drainBuilder.Watches(&tidekeeperv1.ScheduledRestart{}, restartChanges(known))
	}
	if err := drainBuilder.Complete(retry.Conflicts(drainer)); err != nil {
		return fmt.Errorf("node maintenance: %w", err)
	}
	all := allMaintenances(mgr.GetCache())
	b := ctrl.NewControllerManagedBy(mgr).
		For(&tidekeeperv1.NodeMaintenance{}).
		Named(Name).
		WatchesRawSource(wakeups).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(all), ctrlbuilder.WithPredicates(nodeChanges)).
		Watches(&tidekeeperv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(all), ctrlbuilder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{RateLimiter: retry.Limiter[reconcile.Request]()})
	if freezes.Watched() {
		b.Watches(&tidekeeperv1.Freeze{}, handler.EnqueueRequestsFromMapFunc(all), ctrlbuilder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if moves.Served() {
		// ScheduledRestarts are watched because the controller deletes them after their restart has
		// ended.
		b.Watches(&tidekeeperv1.ScheduledRestart{}, handler.EnqueueRequestsFromMapFunc(maintenanceOfRestart))
	}
	r := &reconciler{
		client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("tidekeeper"), clock: c, wakeups: wakeups,
		freezes: freezes, drains: known, restarts: moves, metrics: m, places: &places{client: mgr.GetClient(), pods: shared.PodsByWorkload(), clock: c},
		move: func(node string) { drainWakeups.Enqueue(requestFor(node)) },
	}
	if err := b.Complete(retry.Conflicts(r)); err != nil {
		return fmt.Errorf("node maintenance: %w", err)
	}
	return nil
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
}

// nodeChanges passes only changes of nodes that affect decisions. The periodic status updates of
// kubelets usually change only timestamps.
var nodeChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Node)
	after, too := e.ObjectNew.(*corev1.Node)
	return !ok || !too || decision.NodeOf(before, 0) != decision.NodeOf(after, 0) || !maps.Equal(before.Labels, after.Labels)
}}

// podChanges returns a handler that queues the node of a changed pod if the node is being drained. It
// ignores pods that are terminating, until they end: the look that follows the beginning of a
// deletion would delay the look that follows its end.
func podChanges(known *drains) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if pod, is := e.ObjectNew.(*corev1.Pod); is && (pod.DeletionTimestamp.IsZero() || pods.IsTerminal(pod)) {
				known.enqueue(pod, queue)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if pod, is := e.Object.(*corev1.Pod); is {
				known.enqueueDeleted(pod, queue)
			}
		},
	}
}

// budgetChanges returns a source that queues the nodes whose drain may wait for a changed
// PodDisruptionBudget.
func budgetChanges(informers cacheapi.Informers, known *drains) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		informer, err := informers.GetInformer(ctx, &policyv1.PodDisruptionBudget{}, cacheapi.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("get the informer for PodDisruptionBudgets: %w", err)
		}
		changed := func(object any) {
			// If events were missed, a deletion does not contain the budget. The drain then continues
			// after lookInterval.
			if budget, err := drain.CachedBudgetOf(object); err == nil {
				known.enqueueWaiting(budget.Namespace, queue)
			}
		}
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed})
		return err
	})
}

// restartChanges returns a handler that queues the nodes whose drain may wait for a changed restart
// that moves pods.
func restartChanges(known *drains) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if _, moves := e.ObjectNew.GetLabels()[tidekeeperv1.NodeMaintenanceLabel]; moves {
				known.enqueueWaiting(e.ObjectNew.GetNamespace(), queue)
			}
		},
	}
}

// maintenanceOfRestart maps a ScheduledRestart that moves pods of drained nodes to its
// NodeMaintenance.
func maintenanceOfRestart(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[tidekeeperv1.NodeMaintenanceLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{requestFor(name)}
}

// allMaintenances returns a function that maps any object to all NodeMaintenances, of which there
// are only a few.
func allMaintenances(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := &tidekeeperv1.NodeMaintenanceList{}
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the NodeMaintenances that a node may belong to")
			return nil
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i] = requestFor(list.Items[i].Name)
		}
		return requests
	}
}
