// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/index"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// readOrder reads those that a ScheduledRestart comes after into the input.
func (r *reconciler) readOrder(ctx context.Context, in *decision.Input) error {
	err := in.ReadOrder(func(name string) (*tidekeeperv1.ScheduledRestart, error) {
		other := &tidekeeperv1.ScheduledRestart{}
		// Up to a thousand are read to find a cycle, and none is modified.
		err := r.client.Get(ctx, client.ObjectKey{Namespace: in.Restart.Namespace, Name: name}, other, client.UnsafeDisableDeepCopy)
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

// changesOrder passes the events of a ScheduledRestart on which those that come after it depend:
// all of its spec, status and request that a decision reads of what comes first, and why it is ready
// or not, by which a cycle gets around. By any other edit, such as of a label, one client could keep
// the workers busy with all that come after.
func changesOrder() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*tidekeeperv1.ScheduledRestart)
		after, also := e.ObjectNew.(*tidekeeperv1.ScheduledRestart)
		if !ok || !also {
			return true
		}
		was, is := before.Status, after.Status
		was.Conditions, is.Conditions = nil, nil
		return reasonOf(before) != reasonOf(after) || before.UID != after.UID || before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Annotations[tidekeeperv1.RestartNowAnnotation] != after.Annotations[tidekeeperv1.RestartNowAnnotation] ||
			!equality.Semantic.DeepEqual(was, is)
	}}
}

// reasonOf returns the reason of the condition Ready, "" if there is none.
func reasonOf(r *tidekeeperv1.ScheduledRestart) string {
	if ready := meta.FindStatusCondition(r.Status.Conditions, tidekeeperv1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
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
