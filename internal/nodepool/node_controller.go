// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeReconciler brings one node into the shape that its pools ask for.
type nodeReconciler struct {
	client  client.Client
	fleet   *fleet
	feed    *feed
	metrics *metrics
	clock   clock.PassiveClock
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *nodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	plan, end := r.fleet.begin(node)
	defer func() { r.feed.push(end()) }()
	if plan.empty() {
		return ctrl.Result{}, nil
	}

	now := r.clock.Now()
	if !r.fleet.mayWrite(node.Name, now) {
		r.metrics.nodeWrites.WithLabelValues(resultDelayed).Inc()
		r.feed.push(r.fleet.fought(node.Name, &plan))
		return ctrl.Result{RequeueAfter: fightInterval}, nil
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Patching node", "node", node.Name, "changes", fmt.Sprint(plan.changes))
	patch := client.RawPatch(types.MergePatchType, plan.patch(node, now))
	switch err := r.client.Patch(ctx, node, patch); {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		r.metrics.nodeWrites.WithLabelValues(resultConflict).Inc()
		return ctrl.Result{}, err
	case err != nil:
		r.metrics.nodeWrites.WithLabelValues(resultError).Inc()
		r.feed.push(r.fleet.failed(node.Name, &plan, err))
		return ctrl.Result{}, fmt.Errorf("patch node: %w", err)
	}
	r.metrics.nodeWrites.WithLabelValues(resultWritten).Inc()
	for _, c := range plan.changes {
		if c.kind == putBack {
			r.metrics.corrections.WithLabelValues(c.pool).Inc()
		}
	}
	r.feed.push(r.fleet.wrote(node.Name, &plan))
	return ctrl.Result{}, nil
}
