// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
)

// nodeReconciler patches a node to match the spec of its pools.
type nodeReconciler struct {
	client client.Client
	// apiReader reads from the API server, not from the cache.
	apiReader client.Reader
	// frozen returns the freeze in force, read from the API server less than a second ago; nil
	// if no freeze is in force.
	frozen  func(context.Context) (*period.Period, error)
	cluster *state.Cluster
	feed    *eventFeed
	metrics *metrics
	clock   clock.PassiveClock
	// overtaken maps names of nodes to the resourceVersion for which a patch was refused
	// because the node had changed. The entry stays until the cache shows a newer version.
	overtaken sync.Map
}

// Reconcile implements [ctrl.TypedReconciler].
func (r *nodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.client.Get(ctx, request.NamespacedName, node); err != nil {
		r.overtaken.Delete(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	nodePlan, end := r.cluster.BeginWrite(node)
	defer func() { r.feed.push(end()) }()
	if nodePlan.Empty() {
		return ctrl.Result{}, nil
	}
	if allowed, dirty := r.cluster.AllowWrite(node.Name, &nodePlan, r.clock.Now()); !allowed {
		r.metrics.nodeWrites.WithLabelValues(resultDelayed).Inc()
		r.feed.push(dirty)
		return ctrl.Result{RequeueAfter: plan.WriteInterval}, nil
	}
	if len(nodePlan.Evicting) > 0 {
		// The freeze is checked again: the pool's turn to taint may have come long ago, before
		// conflicts, a throttled node or a long queue.
		switch held, err := r.frozen(ctx); {
		case err != nil:
			return ctrl.Result{}, err
		case held != nil:
			ctrl.LoggerFrom(ctx).V(1).Info("A NoExecute taint waits", "node", klog.KObj(node), "for", held.String())
			r.feed.push(r.cluster.WithdrawEvictions(node.Name))
			return ctrl.Result{}, nil
		}
	}
	if orphaned, err := r.areOrphaned(ctx, nodePlan.Orphaned); err != nil {
		return ctrl.Result{}, err
	} else if !orphaned {
		return ctrl.Result{RequeueAfter: verifyDelay}, nil
	}
	err := r.write(ctx, node, &nodePlan)
	if !isRefused(err) || len(nodePlan.Affected) < 2 {
		return ctrl.Result{}, err
	}
	// The API server refuses the whole patch if the settings of a single pool are invalid.
	var all []error
	for _, pool := range nodePlan.Affected {
		others := slices.DeleteFunc(slices.Clone(nodePlan.Affected), func(other string) bool { return other == pool })
		if err := r.writeAlone(ctx, node, others); err != nil {
			all = append(all, err)
			if !isRefused(err) {
				break // The node has changed, or the API server is unreachable.
			}
		}
	}
	return ctrl.Result{}, errors.Join(all...)
}

// writeAlone writes the settings of a single pool, by freezing the others.
func (r *nodeReconciler) writeAlone(ctx context.Context, node *corev1.Node, others []string) error {
	nodePlan, end := r.cluster.BeginWrite(node, others...)
	defer func() { r.feed.push(end()) }()
	if nodePlan.Empty() {
		return nil
	}
	return r.write(ctx, node, &nodePlan)
}

// write carries out a plan. On return, node is the version that the API server returned.
func (r *nodeReconciler) write(ctx context.Context, node *corev1.Node, nodePlan *plan.NodePlan) error {
	version := node.ResourceVersion
	err := r.send(ctx, node, nodePlan)
	if !apierrors.IsConflict(err) {
		r.overtaken.Delete(node.Name)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		r.overtaken.Store(node.Name, version)
		r.metrics.nodeWrites.WithLabelValues(resultConflict).Inc()
		return err
	case err != nil:
		r.metrics.nodeWrites.WithLabelValues(resultError).Inc()
		// If there are several pools, each is tried alone next, which shows whose settings are
		// refused.
		r.feed.push(r.cluster.RecordFailure(node.Name, nodePlan.Affected, err, isRefused(err) && len(nodePlan.Affected) == 1))
		return fmt.Errorf("patch node: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Patched a node", "node", klog.KObj(node), "changes", fmt.Sprint(nodePlan.Changes))
	r.metrics.nodeWrites.WithLabelValues(resultWritten).Inc()
	for _, c := range nodePlan.Changes {
		if c.Kind == plan.Restored {
			r.metrics.corrections.WithLabelValues(c.Pool).Inc()
		}
	}
	r.feed.push(r.cluster.RecordWrite(node.Name, nodePlan))
	return nil
}

// send sends the patch of a plan. The error is a conflict if a value that the plan depends on
// has changed on the node.
func (r *nodeReconciler) send(ctx context.Context, node *corev1.Node, nodePlan *plan.NodePlan) error {
	now := r.clock.Now()
	// If this version was overtaken, the cache still shows the old node.
	if version, _ := r.overtaken.Load(node.Name); version != node.ResourceVersion {
		patch := client.RawPatch(types.JSONPatchType, nodePlan.Patch(node, now))
		if err := r.client.Patch(ctx, node, patch); !apierrors.IsInvalid(err) {
			return err
		}
		// Either the node has changed, or the API server refuses the new values. The answer is
		// the same for both, except to a patch that names the resourceVersion.
	}
	return r.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, nodePlan.VersionedPatch(node, now)))
}

// isRefused reports whether the API server has refused a write because of its content, so that
// it would refuse the write again.
func isRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// areOrphaned reports whether, according to the API server itself, no pool asks for or manages
// the settings any more. A cache that lags, or has gone back in time, must not cause the
// removal of a setting because the pool is missing from the cache.
func (r *nodeReconciler) areOrphaned(ctx context.Context, removals []plan.Change) (bool, error) {
	pools := map[string]*tidekeeperv1.NodePool{}
	for _, c := range removals {
		pool, asked := pools[c.Pool]
		if !asked {
			// A list with a field selector: the manager has the right to list NodePools, but
			// not to get them.
			list := &tidekeeperv1.NodePoolList{}
			if err := r.apiReader.List(ctx, list, client.MatchingFields{"metadata.name": c.Pool}); err != nil {
				return false, fmt.Errorf("look up NodePool %s to make sure that it does not ask for %s: %w", c.Pool, c.Key, err)
			}
			if len(list.Items) > 0 {
				pool = &list.Items[0]
			}
			pools[c.Pool] = pool
		}
		if pool == nil {
			continue
		}
		for key := range setting.Desired(pool) {
			if key == c.Key {
				return false, nil
			}
		}
		if setting.Manages(pool, c.Key) {
			return false, nil
		}
	}
	return true, nil
}
