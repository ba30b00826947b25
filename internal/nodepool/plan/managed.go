// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// IsActive reports whether the pool may apply settings to nodes. An active pool has the finalizer,
// which guarantees that its settings will be removed, and is not being deleted.
func IsActive(pool *tidekeeperv1.NodePool) bool {
	return pool.DeletionTimestamp.IsZero() && slices.Contains(pool.Finalizers, tidekeeperv1.NodePoolFinalizer)
}

// ManagedKeys returns the keys that the pool must manage: its [WantedKeys], and the previously
// managed keys for which mayBeOnNode returns true.
func ManagedKeys(pool *tidekeeperv1.NodePool, mayBeOnNode func(setting.Key) bool) tidekeeperv1.ManagedKeys {
	keys := WantedKeys(pool)
	for key := range setting.Managed(pool) {
		if mayBeOnNode(key) {
			keys.Insert(key)
		}
	}
	return setting.ManagedKeys(keys)
}
