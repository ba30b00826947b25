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

// Where a node has its settings.
const (
	labelsPath      = "/metadata/labels"
	annotationsPath = "/metadata/annotations"
	taintsPath      = "/spec/taints"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Patch returns the JSON patch that turns the settings of one version of a node into those of
// another. It is valid as long as the node is the same one, with the same labels and with the
// same values of the settings that were read, and the API server refuses it otherwise. What
// others write to the rest of the node does no harm: kubelets report its status all the time.
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

// VersionedPatch returns a JSON merge patch that does the same as [Patch]. It is valid only for
// the resourceVersion of the first version.
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

// namesOf returns the names of the keys of one kind, in order.
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

// changesOf returns the operations that turn one version of the map at a path into another. A
// map that is empty does not exist: nothing can be added to it.
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

// testOf returns the operation that fails unless the value is at the path. Nil means that
// there must be none: the API server takes a missing value for null, which RFC 6902 does not
// ask for, and a test of test/e2e notices if that ends.
func testOf(path string, value any) operation { return operation{"test", path, marshal(value)} }

// addOf returns the operation that adds the value at the path, or replaces what is there.
func addOf(path string, value any) operation { return operation{"add", path, marshal(value)} }

// optional returns nil in place of a map that the API server leaves out because it is empty;
// optionalList does so for a list.
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
