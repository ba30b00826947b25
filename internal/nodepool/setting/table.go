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

// field defines a kind of setting.
type field struct {
	kind Kind

	// desired yields the names and values in the spec of a pool.
	desired func(*tidekeeperv1.NodePoolSpec) iter.Seq2[string, string]
	// managed returns the managed names in the status of a pool.
	managed func(*tidekeeperv1.ManagedKeys) *[]string
	// actual yields the names and values on a node, value returns a single value.
	actual func(*corev1.Node) iter.Seq2[string, string]
	value  func(node *corev1.Node, name string) (value string, exists bool)

	// stored returns the map of values in an ownership record.
	stored func(*Stored) *map[string]string
	// hashes returns the map of hashes of long values in an ownership record. It is nil for
	// kinds whose values are never long.
	hashes func(*Stored) *map[string]string

	// detach gives a shallow copy of a node its own copy of the field that set and remove
	// change.
	detach func(*corev1.Node)
	// set puts a setting on a node at the given time, remove removes it.
	set    func(node *corev1.Node, name, value string, at time.Time)
	remove func(node *corev1.Node, name string)
	// tests returns the operations of a JSON patch that fail if the settings with these names
	// have changed on the node since read.
	tests func(read *corev1.Node, names []string) []operation
	// changes returns the operations of a JSON patch that change a node from before to after.
	changes func(before, after *corev1.Node) []operation
	// merge adds the difference between two versions of a node to a JSON merge patch.
	merge func(before, after *corev1.Node, metadata, spec map[string]any)

	// format returns a setting in kubectl's notation.
	format func(name, value string) string
}

// fields is the table, in the order in which settings are shown.
var fields = []field{labels, annotations, taints}

// Stored is the JSON form of the settings that a pool has put on a node, in the ownership
// record. Records written by older versions must stay readable.
type Stored struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Hashes are the hashes of annotations with long values.
	Hashes map[string]string `json:"hashes,omitempty"`
	Taints map[string]string `json:"taints,omitempty"`
}

// Kinds returns all kinds, in the order in which settings are shown.
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

// Values returns the stored values of a kind, by name.
func (s *Stored) Values(kind Kind) *map[string]string { return fieldOf(kind).stored(s) }

// HashesOf returns the stored hashes of long values of a kind, by name; nil if values of that
// kind are never long.
func (s *Stored) HashesOf(kind Kind) *map[string]string {
	if f := fieldOf(kind); f.hashes != nil {
		return f.hashes(s)
	}
	return nil
}

// CanBeLong reports whether values of this kind can be long enough for an ownership record to
// store their hashes instead.
func (k Kind) CanBeLong() bool { return fieldOf(k).hashes != nil }

// Format returns a setting as kubectl writes it, without its kind: key=value, or
// key=value:effect for a taint.
func Format(key Key, value string) string { return fieldOf(key.Kind).format(key.Name, value) }
