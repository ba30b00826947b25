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

// nodeReconciler patches nodes to match the specs of the pools that select them.
type nodeReconciler struct {
	client client.Client
	// apiReader reads from the API server, bypassing the cache.
	apiReader client.Reader
	// frozen returns the freeze in force, or nil if there is none. Its result was read from the API
	// server at most freeze.SharedFor ago.
	frozen  func(context.Context) (*period.Period, error)
	cluster *state.Cluster
	feed    *eventFeed
	metrics *metrics
	clock   clock.PassiveClock
	// overtaken maps the name of a node to the cached resourceVersion for which a patch of the node
	// failed with a conflict. The entry is ignored once the cache shows another resourceVersion.
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
		// A freeze may have begun since the pool was permitted to taint the node, because
		// conflicts, throttling or a long queue can delay this write.
		switch held, err := r.frozen(ctx); {
		case err != nil:
			return ctrl.Result{}, err
		case held != nil:
			ctrl.LoggerFrom(ctx).V(1).Info("A NoExecute taint waits", "node", klog.KObj(node), "for", held.String())
			r.feed.push(r.cluster.WithdrawEvictions(node.Name))
			return ctrl.Result{}, nil
		}
	}
	if len(nodePlan.Emptied) > 0 {
		switch left, err := podsLeft(ctx, r.apiReader, node, nodePlan.Emptied, r.clock.Now()); {
		case err != nil:
			return ctrl.Result{}, err
		case left:
			r.feed.push(r.cluster.Emptying.WithdrawTaints(node.Name))
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
	// The API server has rejected the patch, as it does if the settings of any pool are invalid.
	// The settings of each pool are therefore written separately, so that only the invalid settings
	// are rejected.
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

// writeAlone writes the settings of a single pool. The settings of all other pools on the node,
// which are given in `others`, are neither added nor removed.
func (r *nodeReconciler) writeAlone(ctx context.Context, node *corev1.Node, others []string) error {
	nodePlan, end := r.cluster.BeginWrite(node, others...)
	defer func() { r.feed.push(end()) }()
	if nodePlan.Empty() {
		return nil
	}
	return r.write(ctx, node, &nodePlan)
}

// write patches the node as planned, and records the result in the model and the metrics. After a
// successful patch, `node` holds the version returned by the API server.
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
		// A rejection is attributed to a pool only if the patch affects no other pool. Otherwise,
		// the caller writes the settings of each pool separately, to find the pools whose settings
		// are rejected.
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

// send sends the plan's patch. It returns a conflict error if a value that the plan depends on has
// changed on the node.
func (r *nodeReconciler) send(ctx context.Context, node *corev1.Node, nodePlan *plan.NodePlan) error {
	now := r.clock.Now()
	// If a patch for this resourceVersion of the node has already failed with a conflict, the cache
	// is stale and a JSON patch would fail again.
	if version, _ := r.overtaken.Load(node.Name); version != node.ResourceVersion {
		patch := client.RawPatch(types.JSONPatchType, nodePlan.Patch(node, now))
		if err := r.client.Patch(ctx, node, patch); !apierrors.IsInvalid(err) {
			return err
		}
		// For a JSON patch, the API server returns the same error if the node has changed and if a
		// value is invalid. The following patch contains the resourceVersion, and fails with a
		// conflict only if the node has changed.
	}
	return r.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, nodePlan.VersionedPatch(node, now)))
}

// isRefused reports whether the API server rejected a write because of its content, so that a retry
// would be rejected as well.
func isRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// areOrphaned reports whether no pool on the API server specifies or manages the settings in
// `removals`. It prevents a stale cache that lacks a pool from causing the removal of that pool's
// settings.
func (r *nodeReconciler) areOrphaned(ctx context.Context, removals []plan.Change) (bool, error) {
	pools := map[string]*tidekeeperv1.NodePool{}
	for _, c := range removals {
		pool, asked := pools[c.Pool]
		if !asked {
			// The manager may list NodePools but not get them, so a list with a field selector is
			// used.
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
		if plan.WantedKeys(pool).Has(c.Key) || setting.Manages(pool, c.Key) {
			return false, nil
		}
	}
	return true, nil
}
