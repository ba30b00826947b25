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

// field defines one kind of setting.
type field struct {
	kind Kind

	// desired yields the names and values that the spec of a pool asks for.
	desired func(*tidekeeperv1.NodePoolSpec) iter.Seq2[string, string]
	// managed returns the names that the status of a pool says it manages.
	managed func(*tidekeeperv1.ManagedKeys) *[]string
	// actual yields the names and values that a node has, value returns one of them.
	actual func(*corev1.Node) iter.Seq2[string, string]
	value  func(node *corev1.Node, name string) (value string, exists bool)

	// stored returns the map of an ownership record that has the values.
	stored func(*Stored) *map[string]string
	// hashes returns the map that has hashes of long values. It is nil for kinds whose
	// values are never long.
	hashes func(*Stored) *map[string]string

	// detach gives a shallow copy of a node its own copy of what set and remove change.
	detach func(*corev1.Node)
	// set puts a setting on a node at the given time, remove removes it.
	set    func(node *corev1.Node, name, value string, at time.Time)
	remove func(node *corev1.Node, name string)
	// tests returns the operations of a JSON patch that fail if a node no longer has what
	// was read of it, which are these names.
	tests func(read *corev1.Node, names []string) []operation
	// changes returns those that turn one version of a node into another.
	changes func(before, after *corev1.Node) []operation
	// merge adds the difference between two versions of a node to a JSON merge patch.
	merge func(before, after *corev1.Node, metadata, spec map[string]any)

	// format returns a setting in kubectl's notation.
	format func(name, value string) string
}

// fields is the table, in the order in which settings are shown.
var fields = []field{labels, annotations, taints}

// Stored is the settings that one pool has put on a node, as they are stored in the
// ownership record. Records that older versions wrote must stay readable.
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

// Values returns the map of the stored form that has the values of one kind, by name.
func (s *Stored) Values(kind Kind) *map[string]string { return fieldOf(kind).stored(s) }

// HashesOf returns the map of the stored form that has the hashes of long values of one
// kind, by name. It returns nil if values of that kind are never long.
func (s *Stored) HashesOf(kind Kind) *map[string]string {
	if f := fieldOf(kind); f.hashes != nil {
		return f.hashes(s)
	}
	return nil
}

// CanBeLong reports whether values of this kind can be so long that an ownership record
// stores hashes of them.
func (k Kind) CanBeLong() bool { return fieldOf(k).hashes != nil }

// Format returns a setting as kubectl writes it, without its kind: key=value, or
// key=value:effect for a taint.
func Format(key Key, value string) string { return fieldOf(key.Kind).format(key.Name, value) }
