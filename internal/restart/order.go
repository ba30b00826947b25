// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// readOrder reads those that a ScheduledRestart comes after into the input.
func (r *reconciler) readOrder(ctx context.Context, in *decision.Input) error {
	err := in.ReadOrder(func(name string) (*tidekeeperv1.ScheduledRestart, error) {
		other := &tidekeeperv1.ScheduledRestart{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: in.Restart.Namespace, Name: name}, other)
		if apierrors.IsNotFound(err) || err == nil && !other.DeletionTimestamp.IsZero() {
			return nil, nil
		}
		return other, err
	})
	if err != nil {
		return err
	}
	return r.readChanges(ctx, in)
}

// followers returns a function that maps a ScheduledRestart to those that come after it.
func followers(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		list := &tidekeeperv1.ScheduledRestartList{}
		if err := reader.List(ctx, list, client.InNamespace(object.GetNamespace()), client.MatchingFields{index.RestartAfter: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list what comes after a ScheduledRestart", "first", klog.KObj(object))
			return nil
		}
		return requestsFor(list.Items)
	}
}
