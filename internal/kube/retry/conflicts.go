// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// After a conflict, the first retry is delayed by firstConflictDelay; the delay doubles with each
// further conflict, up to maxConflictDelay. The cache usually shows the conflicting write within
// milliseconds, but takes longer if the watch has stalled.
const (
	firstConflictDelay = 50 * time.Millisecond
	maxConflictDelay   = 5 * time.Second
)

// Conflicts wraps a reconciler so that conflicts (HTTP 409) and writes to deleted objects (HTTP
// 404) do not count as failures, because they only mean that the cache lags behind. The request is
// retried after a delay, without an error in the log and the metrics. Any other error is returned
// with an empty result. For an error with a RequeueAfter, controller-runtime would log a warning
// and ignore the RequeueAfter.
func Conflicts[R comparable](inner reconcile.TypedReconciler[R]) reconcile.TypedReconciler[R] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstConflictDelay, maxConflictDelay)
	return reconcile.TypedFunc[R](func(ctx context.Context, request R) (ctrl.Result, error) {
		result, err := inner.Reconcile(ctx, request)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: limiter.When(request)}, nil
		}
		limiter.Forget(request)
		if err != nil {
			return ctrl.Result{}, err
		}
		return result, nil
	})
}
