// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setting defines the settings that a NodePool can apply to a node: labels, annotations and
// taints. Each setting has a [Key] and a value.
//
//	key.go     the key that identifies a setting
//	table.go   the table of kinds: their fields in pool specs, nodes and ownership annotations
//	kinds.go   the entries of the table of kinds
//	queries.go reads the settings of a pool's spec and status, and of a node
//	apply.go   applies settings to a copy of a node
//	patch.go   computes a node's patch, including the test operations it contains
//
// To add a kind of setting, add an entry to the table. No other code distinguishes between kinds.
package setting

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Kind is the kind of a setting: label, annotation or taint. It is displayed in events and by the
// kubectl plugin.
type Kind string

// Kinds of settings.
const (
	Label      Kind = "label"
	Annotation Kind = "annotation"
	Taint      Kind = "taint"
)

// Key identifies a setting on a node. A node has at most a single setting per key.
type Key struct {
	Kind Kind
	// Name is the label key or annotation key. For a taint it is key:effect, because Kubernetes
	// identifies a taint by its key together with its effect.
	Name string
}

// LabelKey returns the setting key of the label with the given name.
func LabelKey(name string) Key { return Key{Label, name} }

// AnnotationKey returns the setting key of the annotation with the given name.
func AnnotationKey(name string) Key { return Key{Annotation, name} }

// TaintKey returns the setting key of the taint with the given taint key and effect.
func TaintKey(key string, effect corev1.TaintEffect) Key { return Key{Taint, taintName(key, effect)} }

// String returns the kind and the name of the setting, such as "label zone".
func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// IsNoExecute reports whether k is the key of a NoExecute taint, which evicts pods.
func (k Key) IsNoExecute() bool {
	return k.Kind == Taint && strings.HasSuffix(k.Name, ":"+string(corev1.TaintEffectNoExecute))
}

// NoExecute returns the key of the NoExecute taint with the same taint key, or the zero Key if k
// does not identify a taint.
func (k Key) NoExecute() Key { return k.withEffect(corev1.TaintEffectNoExecute) }

// NoSchedule returns the key of the NoSchedule taint with the same taint key, or the zero Key if k
// does not identify a taint.
func (k Key) NoSchedule() Key { return k.withEffect(corev1.TaintEffectNoSchedule) }

func (k Key) withEffect(effect corev1.TaintEffect) Key {
	if k.Kind != Taint {
		return Key{}
	}
	return TaintKey(k.TaintKey(), effect)
}

// TaintKey returns the taint key, without the effect, of the taint that k identifies. k must
// identify a taint.
func (k Key) TaintKey() string {
	key, _ := splitTaintName(k.Name)
	return key
}

// Compare orders keys by kind, then by name.
func Compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
