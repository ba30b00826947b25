// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Apply returns a copy of the node to which the settings in `set` have been added and from which
// the settings in `remove` have been removed. Fields that do not hold settings are shared with the
// given node. at becomes the timeAdded of added NoExecute taints.
func Apply(node *corev1.Node, set map[Key]string, remove sets.Set[Key], at time.Time) *corev1.Node {
	after := *node
	for i := range fields {
		fields[i].detach(&after)
	}
	for key := range remove {
		fieldOf(key.Kind).remove(&after, key.Name)
	}
	for _, key := range slices.SortedFunc(maps.Keys(set), Compare) {
		fieldOf(key.Kind).set(&after, key.Name, set[key], at)
	}
	return &after
}
