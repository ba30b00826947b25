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

// JSON paths of the settings in a node.
const (
	labelsPath      = "/metadata/labels"
	annotationsPath = "/metadata/annotations"
	taintsPath      = "/spec/taints"
)

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Patch returns the JSON patch that changes the settings of the node from before to after. The
// API server refuses the patch unless the node still has the same UID, the same labels, and the
// same values of the settings in read. Other changes of the node do not matter, such as the
// status that kubelets keep reporting.
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

// VersionedPatch returns a JSON merge patch with the same effect as [Patch]. The API server
// refuses it unless the node still has the resourceVersion of before.
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

// namesOf returns the sorted names of the keys of this kind.
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

// changesOf returns the operations that change the map at path from before to after. An empty
// map is missing from the object, so that its first entries must be added as a whole.
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

// testOf returns the operation that fails unless the value is at the path. A nil value means
// that the path must not exist: the API server treats a missing value as null, which RFC 6902
// does not require. A test in test/e2e notices if that changes.
func testOf(path string, value any) operation { return operation{"test", path, marshal(value)} }

// addOf returns the operation that adds or replaces the value at the path.
func addOf(path string, value any) operation { return operation{"add", path, marshal(value)} }

// optional returns nil for an empty map, which the API server omits; optionalList does the same
// for a list.
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

// escape returns the name as part of a JSON pointer (RFC 6901).
func escape(name string) string { return pointerEscaper.Replace(name) }

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func marshal(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		panic("strings and taints are always JSON: " + err.Error())
	}
	return body
}
