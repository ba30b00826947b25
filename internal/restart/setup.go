// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/manager/index"
	"tidekeeper.dev/tidekeeper/internal/retry"
)

// Options is what can be turned about scheduled restarts. Every field must be
// set.
type Options struct {
	// Concurrency is how many ScheduledRestarts are looked at in parallel.
	Concurrency int
	// MaxConcurrent is how many restarts may be under way at once.
	MaxConcurrent int
	// NamespaceShare is how many percent of them, and at least one, may be of
	// one namespace.
	NamespaceShare int
	// Clock says what time it is, and when so much of it has passed.
	Clock clock.Clock
}

// SetupWithManager adds the controller "scheduled-restart" to the manager. The
// manager's cache must have the informers of ScheduledRestarts (with the index
// [index.RestartTarget]), Deployments, StatefulSets and DaemonSets. If it has that
// of Pods too, it must have the index [index.PodRestart].
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	b := newBudget(options.MaxConcurrent, options.NamespaceShare)
	m, err := newMetrics(ctrlmetrics.Registry, b)
	if err != nil {
		return fmt.Errorf("scheduled restarts: register metrics: %w", err)
	}
	a := newAlarm(options.Clock)
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(), recorder: mgr.GetEventRecorder("tidekeeper"),
		budget: b, alarm: a, metrics: m, clock: options.Clock,
		sent: map[types.NamespacedName]sentTick{}, told: map[types.NamespacedName]string{},
	}
	builder := ctrl.NewControllerManagedBy(mgr).
		For(&tidekeeperv1.ScheduledRestart{}).
		Named("scheduled-restart").
		WatchesRawSource(a).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: retry.Limiter[reconcile.Request]()})
	for _, kind := range Kinds() {
		builder.Watches(NewWorkload(kind), handler.EnqueueRequestsFromMapFunc(restartsOf(mgr.GetCache(), kind)))
	}
	if err := builder.Complete(retry.Conflicts(r)); err != nil {
		return fmt.Errorf("scheduled restarts: %w", err)
	}
	return nil
}

// restartsOf maps a workload to the ScheduledRestarts that it is the target of.
// The reader is the cache itself: the client's list would wait, in the informer's
// own goroutine, until all writes that are under way have come back.
func restartsOf(reader client.Reader, kind string) handler.MapFunc {
	return func(ctx context.Context, workload client.Object) []reconcile.Request {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := reader.List(ctx, list, client.InNamespace(workload.GetNamespace()),
			client.MatchingFields{index.RestartTarget: index.TargetKey(kind, workload.GetName())}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Finding the ScheduledRestarts of a workload", "kind", kind, "name", workload.GetName())
			return nil
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
		}
		return requests
	}
}
