// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setting defines the settings that a NodePool can put on a node: labels, annotations
// and taints. Each setting has a [Key] and a value.
//
//	key.go     the key that identifies a setting
//	table.go   the table of kinds: their fields in specs, nodes and ownership records
//	kinds.go   the entries of that table
//	queries.go the settings in the spec and status of a pool, and on a node
//	apply.go   applies settings to a copy of a node
//	patch.go   computes the patch, and the tests that it contains
//
// To add a kind, add an entry to the table. Nothing else switches on the kind.
package setting

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Kind is a kind of setting, as events and the kubectl plugin show it.
type Kind string

// The kinds of settings.
const (
	Label      Kind = "label"
	Annotation Kind = "annotation"
	Taint      Kind = "taint"
)

// Key identifies a setting on a node.
type Key struct {
	Kind Kind
	// Name is the key of a label or an annotation, or key:effect of a taint, which is
	// how Kubernetes identifies taints.
	Name string
}

// LabelKey returns the key of a label.
func LabelKey(name string) Key { return Key{Label, name} }

// AnnotationKey returns the key of an annotation.
func AnnotationKey(name string) Key { return Key{Annotation, name} }

// TaintKey returns the key of a taint.
func TaintKey(key string, effect corev1.TaintEffect) Key { return Key{Taint, taintName(key, effect)} }

// String returns the kind and the name, such as "label zone".
func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// IsNoExecute reports whether this is the key of a taint that evicts pods.
func (k Key) IsNoExecute() bool {
	return k.Kind == Taint && strings.HasSuffix(k.Name, ":"+string(corev1.TaintEffectNoExecute))
}

// NoExecute returns the key of the taint with the same key that evicts pods; the zero Key for anything but a
// taint.
func (k Key) NoExecute() Key {
	if k.Kind != Taint {
		return Key{}
	}
	key, _ := splitTaintName(k.Name)
	return TaintKey(key, corev1.TaintEffectNoExecute)
}

// Compare orders keys by kind and name.
func Compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
