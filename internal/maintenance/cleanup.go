// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/pages"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
)

// cleanUp uncordons the nodes of a NodeMaintenance that is being deleted, deletes the
// ScheduledRestarts that were created for it, and removes its finalizer.
func (r *reconciler) cleanUp(ctx context.Context, m *tidekeeperv1.NodeMaintenance) error {
	if !controllerutil.ContainsFinalizer(m, tidekeeperv1.NodeMaintenanceFinalizer) {
		return nil
	}
	if err := r.releaseNodes(ctx, m); err != nil {
		return err
	}
	if err := r.restarts.deleteAll(ctx, m); err != nil {
		return err
	}
	before := m.DeepCopy()
	controllerutil.RemoveFinalizer(m, tidekeeperv1.NodeMaintenanceFinalizer)
	if err := r.client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}

// releaseNodes uncordons the nodes of a NodeMaintenance, and removes its marks from all nodes. It
// lists the nodes from the API server, because the cache may not show the manager's most recent
// patches yet.
func (r *reconciler) releaseNodes(ctx context.Context, m *tidekeeperv1.NodeMaintenance) error {
	var marked []*corev1.Node
	err := pages.Each(ctx, r.apiReader, func() *corev1.NodeList { return &corev1.NodeList{} }, func(page *corev1.NodeList) {
		for i := range page.Items {
			if isMarked(&page.Items[i], m) {
				marked = append(marked, &page.Items[i])
			}
		}
	})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, node := range marked {
		kind := decision.UnmarkDue
		switch {
		case node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] == string(m.UID):
			kind = decision.Uncordon
		case node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] == m.Name:
			kind = decision.Clean
		}
		if err := r.patch(ctx, m, node, kind); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s node %s: %w", kind, node.Name, err)
		}
	}
	return nil
}

// isMarked reports whether a node was cordoned, drained or marked as due for the NodeMaintenance.
func isMarked(node *corev1.Node, m *tidekeeperv1.NodeMaintenance) bool {
	return node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] == string(m.UID) ||
		node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] == m.Name || slices.ContainsFunc(node.Spec.Taints, isDueFor(m))
}
