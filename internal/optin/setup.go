// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/kube/retry"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// firstRetry is the delay before the first retry of a failed write; the delay doubles up to
// lastRetry. The first delay is long because every attempt records an event, and because the usual
// causes, such as an exhausted quota, last longer than milliseconds.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

func newLimiter() workqueue.TypedRateLimiter[request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[request](firstRetry, lastRetry)
}

// SetupWithManager adds the controller "restart-opt-in" to the manager. The manager's cache must
// have informers for ScheduledRestarts and for all kinds in [workload.Kinds] that the cluster
// serves.
func SetupWithManager(mgr ctrl.Manager) error {
	const name = "restart-opt-in"
	b := builder.TypedControllerManagedBy[request](mgr).
		Named(name).
		Watches(&tidekeeperv1.ScheduledRestart{}, handler.TypedEnqueueRequestsFromMapFunc(workloadsOfRestart),
			builder.WithPredicates(restartChanges))
	for _, kind := range workload.Kinds {
		b.Watches(kind.New(), handler.TypedEnqueueRequestsFromMapFunc(workloadsOf(kind)),
			builder.WithPredicates(workloadChanges))
	}
	r := &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("tidekeeper"), refused: newLimiter()}
	if err := fairness.Complete(mgr, b, fairness.Controller[request]{
		Options: controller.TypedOptions[request]{
			RateLimiter: newLimiter(),
			LogConstructor: func(r *request) logr.Logger {
				log := mgr.GetLogger().WithValues("controller", name)
				if r != nil {
					log = log.WithValues("kind", r.kind.Kind, "namespace", r.Namespace, "name", r.Name)
				}
				return log
			},
		},
		NamespaceOf: func(r request) string { return r.Namespace },
		ObjectOf:    request.object,
	}, retry.Conflicts(r)); err != nil {
		return fmt.Errorf("opt-in to scheduled restarts: %w", err)
	}
	return nil
}
