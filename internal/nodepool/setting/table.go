// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// field defines the operations for a kind of setting.
type field struct {
	kind Kind

	// desired yields the names and values of the settings in a pool's spec.
	desired func(*tidekeeperv1.NodePoolSpec) iter.Seq2[string, string]
	// managed returns the list of managed names in a pool's status.
	managed func(*tidekeeperv1.ManagedKeys) *[]string
	// actual yields the names and values of the settings on a node. value returns the value of a
	// single setting.
	actual func(*corev1.Node) iter.Seq2[string, string]
	value  func(node *corev1.Node, name string) (value string, exists bool)

	// stored returns the map from names to values in the JSON form of a node's ownership
	// annotation.
	stored func(*Stored) *map[string]string
	// hashes returns the map from names to hashes of long values in a node's ownership annotation.
	// It is nil for kinds whose values are always short.
	hashes func(*Stored) *map[string]string

	// detach replaces the settings of a shallowly copied node with a copy, so that set and remove
	// do not modify the original node.
	detach func(*corev1.Node)
	// set adds or changes a setting of a node; at becomes the timeAdded of a NoExecute taint.
	// remove removes a setting.
	set    func(node *corev1.Node, name, value string, at time.Time)
	remove func(node *corev1.Node, name string)
	// tests returns JSON patch operations that fail if the named settings of the node have changed
	// since `read`.
	tests func(read *corev1.Node, names []string) []operation
	// changes returns the JSON patch operations that change the node's settings from `before` to
	// `after`.
	changes func(before, after *corev1.Node) []operation
	// merge adds the differences between the two versions of a node to the metadata and spec of a
	// JSON merge patch.
	merge func(before, after *corev1.Node, metadata, spec map[string]any)

	// format formats a setting in kubectl's notation.
	format func(name, value string) string
}

// fields lists the definitions of all kinds of settings, in display order.
var fields = []field{labels, annotations, taints}

// Stored is the JSON form of a pool's settings in a node's ownership annotation. Annotations
// written by older versions must remain readable.
type Stored struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Hashes maps annotation names to the hashes of their values, for annotations with long values.
	Hashes map[string]string `json:"hashes,omitempty"`
	Taints map[string]string `json:"taints,omitempty"`
	// Closed maps the keys of NoExecute taints to the times at which the pool closed the node to
	// new pods for them, in the format RFC 3339. It is not a setting of the node.
	Closed map[string]string `json:"closed,omitempty"`
}

// Kinds returns all kinds of settings, in display order.
func Kinds() []Kind {
	kinds := make([]Kind, len(fields))
	for i := range fields {
		kinds[i] = fields[i].kind
	}
	return kinds
}

func fieldOf(kind Kind) *field {
	i := slices.IndexFunc(fields, func(f field) bool { return f.kind == kind })
	if i < 0 {
		panic("no such kind of setting: " + string(kind))
	}
	return &fields[i]
}

// Values returns the stored values of the given kind, keyed by name.
func (s *Stored) Values(kind Kind) *map[string]string { return fieldOf(kind).stored(s) }

// HashesOf returns the stored hashes of long values of the given kind, keyed by name. It returns
// nil for kinds whose values are always short.
func (s *Stored) HashesOf(kind Kind) *map[string]string {
	if f := fieldOf(kind); f.hashes != nil {
		return f.hashes(s)
	}
	return nil
}

// CanBeLong reports whether values of the kind may be so long that the ownership annotation stores
// their hashes instead.
func (k Kind) CanBeLong() bool { return fieldOf(k).hashes != nil }

// Format formats a setting in kubectl's notation, without its kind: key=value for a label or
// annotation, and key=value:effect for a taint.
func Format(key Key, value string) string { return fieldOf(key.Kind).format(key.Name, value) }
