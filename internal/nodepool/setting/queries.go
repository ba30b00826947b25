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

// Desired yields the key and value of each setting in the pool's spec.
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

// Actual returns the values of all labels, annotations and taints of a node, by setting key.
func Actual(node *corev1.Node) map[Key]string {
	settings := make(map[Key]string, len(node.Labels)+len(node.Annotations)+len(node.Spec.Taints))
	for i := range fields {
		for name, value := range fields[i].actual(node) {
			settings[Key{fields[i].kind, name}] = value
		}
	}
	return settings
}

// Value returns the value of the setting with the given key on a node.
func Value(node *corev1.Node, key Key) (value string, exists bool) {
	return fieldOf(key.Kind).value(node, key.Name)
}

// Missing returns the sorted keys of the pool's settings whose value on the node is absent or
// different.
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

// Managed yields the managed keys listed in the pool's status.
func Managed(pool *tidekeeperv1.NodePool) iter.Seq[Key] { return KeysOf(&pool.Status.Managed) }

// Manages reports whether the key is among the managed keys in the pool's status.
func Manages(pool *tidekeeperv1.NodePool, key Key) bool {
	return slices.Contains(*fieldOf(key.Kind).managed(&pool.Status.Managed), key.Name)
}

// KeysOf converts managed keys from the form stored in a pool's status to setting keys.
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

// ManagedKeys converts setting keys to the form stored in a pool's status, sorted.
func ManagedKeys(keys sets.Set[Key]) tidekeeperv1.ManagedKeys {
	var managed tidekeeperv1.ManagedKeys
	for _, key := range slices.SortedFunc(maps.Keys(keys), Compare) {
		names := fieldOf(key.Kind).managed(&managed)
		*names = append(*names, key.Name)
	}
	return managed
}
