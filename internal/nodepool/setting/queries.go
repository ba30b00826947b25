// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Desired yields the settings in the spec of a pool.
func Desired(pool *tidekeeperv1.NodePool) iter.Seq2[Key, string] {
	return func(yield func(Key, string) bool) {
		for i := range fields {
			for name, value := range fields[i].desired(&pool.Spec) {
				if !yield(Key{fields[i].kind, name}, value) {
					return
				}
			}
		}
	}
}

// Actual returns all labels, annotations and taints of a node as settings.
func Actual(node *corev1.Node) map[Key]string {
	settings := make(map[Key]string, len(node.Labels)+len(node.Annotations)+len(node.Spec.Taints))
	for i := range fields {
		for name, value := range fields[i].actual(node) {
			settings[Key{fields[i].kind, name}] = value
		}
	}
	return settings
}

// Value returns the value of a key on a node.
func Value(node *corev1.Node, key Key) (value string, exists bool) {
	return fieldOf(key.Kind).value(node, key.Name)
}

// Missing returns, sorted, the keys in the spec of a pool for which the node does not have the
// pool's value.
func Missing(pool *tidekeeperv1.NodePool, node *corev1.Node) []Key {
	actual := Actual(node)
	var missing []Key
	for key, value := range Desired(pool) {
		if has, ok := actual[key]; !ok || has != value {
			missing = append(missing, key)
		}
	}
	slices.SortFunc(missing, Compare)
	return missing
}

// Managed yields the managed keys of a pool.
func Managed(pool *tidekeeperv1.NodePool) iter.Seq[Key] { return KeysOf(&pool.Status.Managed) }

// Manages reports whether the key is a managed key of the pool.
func Manages(pool *tidekeeperv1.NodePool, key Key) bool {
	return slices.Contains(*fieldOf(key.Kind).managed(&pool.Status.Managed), key.Name)
}

// KeysOf yields the managed keys of a status as setting keys.
func KeysOf(managed *tidekeeperv1.ManagedKeys) iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for i := range fields {
			for _, name := range *fields[i].managed(managed) {
				if !yield(Key{fields[i].kind, name}) {
					return
				}
			}
		}
	}
}

// ManagedKeys returns the keys in the form of a pool's status, sorted.
func ManagedKeys(keys sets.Set[Key]) tidekeeperv1.ManagedKeys {
	var managed tidekeeperv1.ManagedKeys
	for _, key := range slices.SortedFunc(maps.Keys(keys), Compare) {
		names := fieldOf(key.Kind).managed(&managed)
		*names = append(*names, key.Name)
	}
	return managed
}
