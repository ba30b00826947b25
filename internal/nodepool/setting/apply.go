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

// Apply returns a copy of the node with some settings set and others removed. The copy shares
// with the node all fields that no setting changes. A NoExecute taint that is set gets the time
// at as its timeAdded.
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
