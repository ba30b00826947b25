// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

var labels = inMetadata(field{
	kind: Label,
	// The patch tests all labels, because the presence or absence of any label may determine
	// whether a pool selects the node.
	tests: func(read *corev1.Node, _ []string) []operation {
		return []operation{testOf(labelsPath, optional(read.Labels))}
	},
	desired: func(spec *tidekeeperv1.NodePoolSpec) iter.Seq2[string, string] { return plain(spec.Labels) },
	managed: func(managed *tidekeeperv1.ManagedKeys) *[]string { return &managed.Labels },
	stored:  func(stored *Stored) *map[string]string { return &stored.Labels },
}, labelsPath, func(node *corev1.Node) *map[string]string { return &node.Labels })

var annotations = inMetadata(field{
	kind: Annotation,
	// The patch tests only the named annotations, because node agents frequently write their own
	// annotations.
	tests: func(read *corev1.Node, names []string) []operation {
		if len(read.Annotations) == 0 {
			return []operation{testOf(annotationsPath, nil)}
		}
		var tests []operation
		for _, name := range names {
			var value any
			if has, exists := read.Annotations[name]; exists {
				value = has
			}
			tests = append(tests, testOf(annotationsPath+"/"+escape(name), value))
		}
		return tests
	},
	desired: func(spec *tidekeeperv1.NodePoolSpec) iter.Seq2[string, string] { return plain(spec.Annotations) },
	managed: func(managed *tidekeeperv1.ManagedKeys) *[]string { return &managed.Annotations },
	stored:  func(stored *Stored) *map[string]string { return &stored.Annotations },
	hashes:  func(stored *Stored) *map[string]string { return &stored.Hashes },
}, annotationsPath, func(node *corev1.Node) *map[string]string { return &node.Annotations })

// inMetadata completes f, the definition of a kind whose settings are stored in a map in the node's
// metadata. in is the JSON path of that map, and entries returns a pointer to it.
func inMetadata(f field, in string, entries func(*corev1.Node) *map[string]string) field {
	f.actual = func(node *corev1.Node) iter.Seq2[string, string] { return maps.All(*entries(node)) }
	f.value = func(node *corev1.Node, key string) (string, bool) {
		value, exists := (*entries(node))[key]
		return value, exists
	}
	f.detach = func(node *corev1.Node) {
		copied := maps.Clone(*entries(node))
		if copied == nil {
			copied = map[string]string{}
		}
		*entries(node) = copied
	}
	f.set = func(node *corev1.Node, key, value string, _ time.Time) { (*entries(node))[key] = value }
	f.remove = func(node *corev1.Node, key string) { delete(*entries(node), key) }
	f.changes = func(before, after *corev1.Node) []operation { return changesOf(in, *entries(before), *entries(after)) }
	f.merge = func(before, after *corev1.Node, metadata, _ map[string]any) {
		was, is := *entries(before), *entries(after)
		changes := map[string]*string{}
		for key, value := range is {
			if old, existed := was[key]; !existed || old != value {
				changes[key] = &value
			}
		}
		for key := range was {
			if _, exists := is[key]; !exists {
				changes[key] = nil
			}
		}
		if len(changes) > 0 {
			metadata[path.Base(in)] = changes
		}
	}
	f.format = func(key, value string) string { return key + "=" + value }
	return f
}

// taints defines the kind Taint. A patch replaces the entire list of taints, in which other
// clients' taints keep their positions.
var taints = field{
	kind: Taint,
	desired: func(spec *tidekeeperv1.NodePoolSpec) iter.Seq2[string, string] {
		return func(yield func(string, string) bool) {
			for _, t := range spec.Taints {
				if !yield(taintName(t.Key, t.Effect), string(t.Value)) {
					return
				}
			}
		}
	},
	managed: func(managed *tidekeeperv1.ManagedKeys) *[]string { return &managed.Taints },
	actual: func(node *corev1.Node) iter.Seq2[string, string] {
		return func(yield func(string, string) bool) {
			for _, t := range node.Spec.Taints {
				if !yield(taintName(t.Key, t.Effect), t.Value) {
					return
				}
			}
		}
	},
	value: func(node *corev1.Node, name string) (string, bool) {
		i := indexOfTaint(node, name)
		if i < 0 {
			return "", false
		}
		return node.Spec.Taints[i].Value, true
	},
	stored: func(stored *Stored) *map[string]string { return &stored.Taints },
	detach: func(node *corev1.Node) { node.Spec.Taints = slices.Clone(node.Spec.Taints) },
	set:    setTaint,
	remove: func(node *corev1.Node, name string) {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return taintName(t.Key, t.Effect) == name })
	},
	tests: func(read *corev1.Node, names []string) []operation {
		if len(names) == 0 {
			return nil
		}
		return []operation{testOf(taintsPath, optionalList(read.Spec.Taints))}
	},
	changes: func(before, after *corev1.Node) []operation {
		switch {
		case equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints):
			return nil
		case len(after.Spec.Taints) == 0:
			return []operation{{Op: "remove", Path: taintsPath}}
		}
		return []operation{addOf(taintsPath, after.Spec.Taints)}
	},
	merge: func(before, after *corev1.Node, _, spec map[string]any) {
		if !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
			spec["taints"] = after.Spec.Taints
		}
	},
	format: func(name, value string) string {
		key, effect := splitTaintName(name)
		if value == "" {
			return key + ":" + string(effect)
		}
		return key + "=" + value + ":" + string(effect)
	},
}

// setTaint changes the value of the named taint, or appends the taint. at becomes the timeAdded of
// a NoExecute taint, from which the pool controller derives for how long the node counts as
// evicting pods.
func setTaint(node *corev1.Node, name, value string, at time.Time) {
	i := indexOfTaint(node, name)
	if i < 0 {
		key, effect := splitTaintName(name)
		i = len(node.Spec.Taints)
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
	node.Spec.Taints[i].Value = value
	if node.Spec.Taints[i].Effect == corev1.TaintEffectNoExecute {
		node.Spec.Taints[i].TimeAdded = &metav1.Time{Time: at}
	}
}

// indexOfTaint returns the index of the node's taint with the given name (key:effect), or -1 if
// there is none.
func indexOfTaint(node *corev1.Node, name string) int {
	return slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return taintName(t.Key, t.Effect) == name })
}

func taintName(key string, effect corev1.TaintEffect) string { return key + ":" + string(effect) }

func splitTaintName(name string) (key string, effect corev1.TaintEffect) {
	colon := strings.LastIndex(name, ":")
	if colon < 0 {
		return name, ""
	}
	return name[:colon], corev1.TaintEffect(name[colon+1:])
}

// plain yields the map's entries with values of the API's string types converted to plain strings.
func plain[V ~string](entries map[string]V) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key, value := range entries {
			if !yield(key, string(value)) {
				return
			}
		}
	}
}
