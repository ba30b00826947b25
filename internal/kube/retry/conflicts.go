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

// After a conflict the retry waits until the cache shows the other write, or the deletion. That
// takes some milliseconds, or an unknown time if the watch has stalled, so the delays double.
const (
	firstConflictDelay = 50 * time.Millisecond
	maxConflictDelay   = 5 * time.Second
)

// Conflicts returns a reconciler that calls inner and does not treat a conflict (HTTP 409), or
// a write of a deleted object (404), as a failure: the cache is behind. It retries after a
// delay, without an error in the log and the metrics. With any other error it returns an empty
// result, because controller-runtime would ignore RequeueAfter and log a warning.
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
