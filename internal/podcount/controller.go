// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"tidekeeper.dev/tidekeeper/internal/manager/index"
)

// reconciler keeps the label of one ReplicaSet.
type reconciler struct {
	client client.Client
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	rs := &appsv1.ReplicaSet{}
	if err := r.client.Get(ctx, request.NamespacedName, rs); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(rs.Namespace),
		client.MatchingFields{index.PodController: string(rs.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list pods: %w", err)
	}

	n := count(rs, pods.Items)
	body, err := patch(rs, n)
	if err != nil || body == nil {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Labelling ReplicaSet", "pods", n, "was", rs.Labels[Label])
	switch err := r.client.Patch(ctx, rs, client.RawPatch(types.MergePatchType, body)); {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// It is gone, or another has its name, which has an event of its own.
		return ctrl.Result{}, nil
	case apierrors.IsInvalid(err):
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("patch ReplicaSet: %w", err))
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("patch ReplicaSet: %w", err)
	}
	return ctrl.Result{}, nil
}
