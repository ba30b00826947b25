// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	nodev1 "k8s.io/api/node/v1"
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
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/kube/retry"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
)

// SetupWithManager adds three controllers to the manager: "nodepool" reconciles pools,
// "nodepool-node" reconciles nodes, and "nodepool-emptying" evicts pods from nodes. The manager's
// cache must have informers for NodePools, Nodes, Pods, RuntimeClasses and PodDisruptionBudgets.
func SetupWithManager(mgr ctrl.Manager, options Options, c clock.PassiveClock) error {
	cluster := state.NewCluster()
	m, err := newMetrics(ctrlmetrics.Registry, cluster)
	if err != nil {
		return fmt.Errorf("node pools: register metrics: %w", err)
	}
	feed, err := newEventFeed(context.Background(), mgr.GetCache(), cluster)
	if err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	headroom := newHeadroomWorker(cluster, feed, c)
	if err := mgr.Add(headroom); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	drainable, err := newDrainableWorker(mgr, cluster, feed, c)
	if err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	if err := errors.Join(mgr.Add(drainable), ctrlmetrics.Registry.Register(drainableCollector{drainable})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	freezes := freeze.NewReader(mgr, c)
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool-node").
		WatchesRawSource(feed.nodeSource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.NodeConcurrency, RateLimiter: retry.Limiter[reconcile.Request]()}).
		Complete(retry.Conflicts(&nodeReconciler{client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), frozen: freezes.RecentlyAnywhere, cluster: cluster, feed: feed, metrics: m, clock: c})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	emptying := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool-emptying").
		WatchesRawSource(feed.emptyingSource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: emptyingConcurrency, RateLimiter: retry.Limiter[reconcile.Request]()})
	if freezes.Watched() {
		emptying.Watches(&tidekeeperv1.Freeze{}, handler.EnqueueRequestsFromMapFunc(allEmptying(cluster)), ctrlbuilder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if err := emptying.Complete(retry.Conflicts(&emptyingReconciler{
		client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("tidekeeper"),
		cluster: cluster, feed: feed, metrics: m, clock: c, memories: newEmptyingMemories(), minDuration: options.NoExecuteInterval,
		heldBack: func(ctx context.Context, now time.Time) (*period.Period, time.Duration, error) {
			return heldBack(ctx, freezes, freezes.RecentlyAnywhere, now)
		},
	})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	builder := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool").
		WithOptions(controller.Options{RateLimiter: retry.Limiter[reconcile.Request]()}).
		WatchesRawSource(feed.poolSource()).
		Watches(&nodev1.RuntimeClass{}, handler.EnqueueRequestsFromMapFunc(poolOfRuntimeClass))
	if freezes.Watched() {
		builder.Watches(&tidekeeperv1.Freeze{}, handler.EnqueueRequestsFromMapFunc(allPools(mgr.GetCache())), ctrlbuilder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if err := builder.Complete(retry.Conflicts(&poolReconciler{
		client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), freezes: freezes, recorder: mgr.GetEventRecorder("tidekeeper"),
		cluster: cluster, feed: feed, headroom: headroom, drainable: drainable, metrics: m, clock: c, options: options,
	})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	return nil
}

// poolOfRuntimeClass maps a RuntimeClass to the pool whose name follows the prefix in the
// RuntimeClass's name. It does so even if the pool does not own the RuntimeClass, because the
// pool's status reports such a conflict.
func poolOfRuntimeClass(_ context.Context, o client.Object) []reconcile.Request {
	pool, ok := strings.CutPrefix(o.GetName(), tidekeeperv1.RuntimeClassPrefix)
	if !ok {
		return nil
	}
	return []reconcile.Request{requestFor(pool)}
}

// allEmptying returns a function that maps a Freeze to all nodes that are being emptied, because a
// Freeze may hold back the evictions from any of them.
func allEmptying(cluster *state.Cluster) handler.MapFunc {
	return func(context.Context, client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, node := range cluster.Emptying.Nodes() {
			requests = append(requests, requestFor(node))
		}
		return requests
	}
}

// allPools returns a function that maps a Freeze to all pools, because a freeze may hold back any
// pool's taints.
func allPools(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		pools := &tidekeeperv1.NodePoolList{}
		if err := reader.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the node pools that a freeze may hold back")
			return nil
		}
		requests := make([]reconcile.Request, len(pools.Items))
		for i := range pools.Items {
			requests[i] = requestFor(pools.Items[i].Name)
		}
		return requests
	}
}
