// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// JSON paths of a node's labels, annotations and taints.
const (
	labelsPath      = "/metadata/labels"
	annotationsPath = "/metadata/annotations"
	taintsPath      = "/spec/taints"
)

// operation is a JSON patch operation (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Patch returns the JSON patch that changes the node's settings from `before` to `after`. The API
// server rejects the patch unless the node still has the same UID, the same labels, and the same
// values for the keys in `read`. Other changes of the node, such as kubelet status updates, do not
// matter.
func Patch(before, after *corev1.Node, read sets.Set[Key]) []byte {
	patch := []operation{testOf("/metadata/uid", before.UID)}
	for i := range fields {
		patch = append(patch, fields[i].tests(before, namesOf(read, fields[i].kind))...)
	}
	for i := range fields {
		patch = append(patch, fields[i].changes(before, after)...)
	}
	return marshal(patch)
}

// VersionedPatch returns a JSON merge patch with the same effect as [Patch]. The API server rejects
// it unless the node's resourceVersion still equals that of `before`.
func VersionedPatch(before, after *corev1.Node) []byte {
	metadata, spec := map[string]any{"resourceVersion": before.ResourceVersion}, map[string]any{}
	for i := range fields {
		fields[i].merge(before, after, metadata, spec)
	}
	patch := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return marshal(patch)
}

// namesOf returns the sorted names of the given keys that are of the given kind.
func namesOf(keys sets.Set[Key], kind Kind) []string {
	var names []string
	for key := range keys {
		if key.Kind == kind {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// changesOf returns the JSON patch operations that change the map at `path` from `before` to
// `after`. If `before` is empty, the API server omits the map, so the entire map must be added.
func changesOf(path string, before, after map[string]string) []operation {
	if len(before) == 0 {
		if len(after) == 0 {
			return nil
		}
		return []operation{addOf(path, after)}
	}
	var changes []operation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if old, existed := before[key]; !existed || old != after[key] {
			changes = append(changes, addOf(path+"/"+escape(key), after[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, exists := after[key]; !exists {
			changes = append(changes, operation{Op: "remove", Path: path + "/" + escape(key)})
		}
	}
	return changes
}

// testOf returns the operation that fails unless the path has the given value. A nil value means
// that the path must not exist, because the API server treats a missing value as null. RFC 6902
// does not require this behavior, so a test in test/e2e verifies it.
func testOf(path string, value any) operation { return operation{"test", path, marshal(value)} }

// addOf returns the operation that adds or replaces the value at the given path.
func addOf(path string, value any) operation { return operation{"add", path, marshal(value)} }

// optional returns nil for an empty map, because the API server omits empty maps. optionalList does
// the same for lists.
func optional(entries map[string]string) any {
	if len(entries) == 0 {
		return nil
	}
	return entries
}

func optionalList(list []corev1.Taint) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// escape escapes a name for use in a JSON pointer (RFC 6901).
func escape(name string) string { return pointerEscaper.Replace(name) }

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func marshal(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		panic("strings and taints are always JSON: " + err.Error())
	}
	return body
}
