// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
)

// nodeReconciler brings one node into the shape that its pools ask for.
type nodeReconciler struct {
	client client.Client
	// live reads past the cache.
	live    client.Reader
	cluster *state.Cluster
	feed    *eventFeed
	metrics *metrics
	clock   clock.PassiveClock
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *nodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	nodePlan, end := r.cluster.BeginWrite(node)
	defer func() { r.feed.push(end()) }()
	if nodePlan.Empty() {
		return ctrl.Result{}, nil
	}
	if !r.cluster.AllowWrite(node.Name, r.clock.Now()) {
		r.metrics.nodeWrites.WithLabelValues(resultDelayed).Inc()
		r.feed.push(r.cluster.RecordThrottled(node.Name, &nodePlan))
		return ctrl.Result{RequeueAfter: plan.WriteInterval}, nil
	}
	if sure, err := r.areOrphans(ctx, nodePlan.Orphaned); err != nil {
		return ctrl.Result{}, err
	} else if !sure {
		return ctrl.Result{RequeueAfter: verifyDelay}, nil
	}
	err := r.write(ctx, node, &nodePlan)
	if !refuses(err) || len(nodePlan.Affected) < 2 {
		return ctrl.Result{}, err
	}
	// One pool's part of the patch is enough for all of it to be refused.
	var all []error
	for _, pool := range nodePlan.Affected {
		others := slices.DeleteFunc(slices.Clone(nodePlan.Affected), func(other string) bool { return other == pool })
		if err := r.writeAlone(ctx, node, others); err != nil {
			all = append(all, err)
			if !refuses(err) {
				break // The node has changed meanwhile, or the API server is not there.
			}
		}
	}
	return ctrl.Result{}, errors.Join(all...)
}

// writeAlone writes what one pool asks for: the others are frozen.
func (r *nodeReconciler) writeAlone(ctx context.Context, node *corev1.Node, others []string) error {
	nodePlan, end := r.cluster.BeginWrite(node, others...)
	defer func() { r.feed.push(end()) }()
	if nodePlan.Empty() {
		return nil
	}
	return r.write(ctx, node, &nodePlan)
}

// write carries a plan out. The node is the new one afterwards.
func (r *nodeReconciler) write(ctx context.Context, node *corev1.Node, nodePlan *plan.NodePlan) error {
	ctrl.LoggerFrom(ctx).V(1).Info("Patching node", "node", node.Name, "changes", fmt.Sprint(nodePlan.Changes))
	patch := client.RawPatch(types.MergePatchType, nodePlan.Patch(node, r.clock.Now()))
	switch err := r.client.Patch(ctx, node, patch); {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		r.metrics.nodeWrites.WithLabelValues(resultConflict).Inc()
		return err
	case err != nil:
		r.metrics.nodeWrites.WithLabelValues(resultError).Inc()
		// If there are several pools, each is tried alone, which tells whose it is.
		r.feed.push(r.cluster.RecordFailure(node.Name, nodePlan.Affected, err, refuses(err) && len(nodePlan.Affected) == 1))
		return fmt.Errorf("patch node: %w", err)
	}
	r.metrics.nodeWrites.WithLabelValues(resultWritten).Inc()
	for _, c := range nodePlan.Changes {
		if c.Kind == plan.Restored {
			r.metrics.corrections.WithLabelValues(c.Pool).Inc()
		}
	}
	r.feed.push(r.cluster.RecordWrite(node.Name, nodePlan))
	return nil
}

// refuses reports whether the API server has refused a write for what it says, so
// that it would refuse it again.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// areOrphans asks the API server itself whether nobody vouches for the slots any
// more: what a cache that is behind, or has gone back in time, does not show must
// not be taken off.
func (r *nodeReconciler) areOrphans(ctx context.Context, slots []plan.Change) (bool, error) {
	pools := map[string]*tidekeeperv1.NodePool{}
	for _, c := range slots {
		pool, asked := pools[c.Pool]
		if !asked {
			// The manager has the right to list them, and not to get one.
			list := &tidekeeperv1.NodePoolList{}
			if err := r.live.List(ctx, list, client.MatchingFields{"metadata.name": c.Pool}); err != nil {
				return false, fmt.Errorf("look up NodePool %s to see that it does not ask for %s: %w", c.Pool, c.Key, err)
			}
			if len(list.Items) > 0 {
				pool = &list.Items[0]
			}
			pools[c.Pool] = pool
		}
		if pool == nil {
			continue
		}
		for s := range setting.Desired(pool) {
			if s == c.Key {
				return false, nil
			}
		}
		if setting.Manages(pool, c.Key) {
			return false, nil
		}
	}
	return true, nil
}
