// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"tidekeeper.dev/tidekeeper/internal/retry"
)

// concurrency is how many ReplicaSets are written at the same time.
const concurrency = 8

// SetupWithManager adds the controller "pod-count" to the manager. The
// manager's cache must have the informers of ReplicaSets and Pods, these with
// the index [index.PodController].
func SetupWithManager(mgr ctrl.Manager) error {
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("pod-count").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: retry.Limiter[reconcile.Request]()}).
		For(&appsv1.ReplicaSet{}, builder.WithPredicates(replicaSetChanges)).
		Watches(&corev1.Pod{}, podEvents).
		Complete(&reconciler{client: mgr.GetClient()}); err != nil {
		return fmt.Errorf("pod count: %w", err)
	}
	return nil
}
