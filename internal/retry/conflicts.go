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

// A write that was overtaken waits for the cache to show by what. That takes
// some milliseconds, unless the watch stands still, and then nobody knows how
// long: so the waits double.
const (
	firstConflict = 50 * time.Millisecond
	lastConflict  = 5 * time.Second
)

// Conflicts returns a reconciler that does what another does, but to which a
// conflict (HTTP 409) is no failure: it is tried again after a while, without an
// error in the log and in the metrics.
func Conflicts[R comparable](inner reconcile.TypedReconciler[R]) reconcile.TypedReconciler[R] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[R](firstConflict, lastConflict)
	return reconcile.TypedFunc[R](func(ctx context.Context, request R) (ctrl.Result, error) {
		result, err := inner.Reconcile(ctx, request)
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: limiter.When(request)}, nil
		}
		limiter.Forget(request)
		return result, err
	})
}
