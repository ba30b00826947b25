// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"strings"
	"time"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/retry"
)

// SetupWithManager adds the two controllers of node pools to the manager:
// "nodepool", whose keys are pools, and "nodepool-node", whose keys are nodes.
// The manager's cache must have the informers of NodePools, Nodes, Pods and
// RuntimeClasses.
func SetupWithManager(mgr ctrl.Manager, options Options, c clock.PassiveClock) error {
	f := state.NewCluster()
	m, err := newMetrics(ctrlmetrics.Registry, f)
	if err != nil {
		return fmt.Errorf("node pools: register metrics: %w", err)
	}
	d, err := newEventFeed(context.Background(), mgr.GetCache(), f)
	if err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool-node").
		WatchesRawSource(d.nodeSource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.NodeConcurrency, RateLimiter: retry.Limiter[reconcile.Request]()}).
		Complete(retry.Conflicts(&nodeReconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), cluster: f, feed: d, metrics: m, clock: c})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("nodepool").
		WithOptions(controller.Options{RateLimiter: retry.Limiter[reconcile.Request]()}).
		WatchesRawSource(d.poolSource()).
		Watches(&nodev1.RuntimeClass{}, handler.EnqueueRequestsFromMapFunc(poolOfRuntimeClass)).
		Complete(retry.Conflicts(&poolReconciler{
			client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("tidekeeper"),
			cluster: f, feed: d, metrics: m, clock: c, options: options, written: map[string]time.Time{},
		})); err != nil {
		return fmt.Errorf("node pools: %w", err)
	}
	return nil
}

// poolOfRuntimeClass returns the pool that a RuntimeClass is named for, be it
// its owner or in its way.
func poolOfRuntimeClass(_ context.Context, o client.Object) []reconcile.Request {
	pool, ok := strings.CutPrefix(o.GetName(), tidekeeperv1.RuntimeClassPrefix)
	if !ok {
		return nil
	}
	return []reconcile.Request{requestFor(pool)}
}
