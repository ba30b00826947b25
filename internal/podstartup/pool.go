// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podstartup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool"
)

// poolOf returns the name of the pool that the node is a member of, or "". Of
// several it is the oldest, which is the one that has its way with the node.
func poolOf(node *corev1.Node, pools []tidekeeperv1.NodePool) string {
	var oldest *tidekeeperv1.NodePool
	for i := range pools {
		p := &pools[i]
		if selects(p, node) && (oldest == nil || nodepool.BySeniority(p, oldest) < 0) {
			oldest = p
		}
	}
	if oldest == nil {
		return ""
	}
	return oldest.Name
}

// selects tells whether the node is a member of the pool.
func selects(pool *tidekeeperv1.NodePool, node *corev1.Node) bool {
	selector, err := nodepool.Selector(pool)
	return err == nil && selector.Matches(labels.Set(node.Labels))
}
