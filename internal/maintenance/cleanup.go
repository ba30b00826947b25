// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
)

// cleanUp uncordons the nodes of a NodeMaintenance that is being deleted, deletes the
// ScheduledRestarts that were created for it, and removes its finalizer.
func (r *reconciler) cleanUp(ctx context.Context, m *tidekeeperv1.NodeMaintenance) error {
	if !controllerutil.ContainsFinalizer(m, tidekeeperv1.NodeMaintenanceFinalizer) {
		return nil
	}
	list := &corev1.NodeList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	names := map[string]bool{}
	for i := range list.Items {
		if isMarked(&list.Items[i], m) {
			names[list.Items[i].Name] = true
		}
	}
	// The nodes in the status are included, because the cache may not show their most recent
	// patches yet.
	for name := range m.Status.Nodes {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		node := &corev1.Node{}
		if err := r.apiReader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("get node %s: %w", name, err)
		}
		if !isMarked(node, m) {
			continue
		}
		kind := decision.Clean
		if node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] == string(m.UID) {
			kind = decision.Uncordon
		}
		if err := r.patch(ctx, m, node, kind); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("uncordon node %s: %w", name, err)
		}
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

// isMarked reports whether the annotations of a node show that it was cordoned or drained for the
// NodeMaintenance.
func isMarked(node *corev1.Node, m *tidekeeperv1.NodeMaintenance) bool {
	return node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] == string(m.UID) || node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] == m.Name
}
