// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// ControlPlane lists field managers that are neither users nor operators: the control plane,
// kubelets, and the sandbox itself.
var ControlPlane = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubelets", "sandbox"}

// byControlPlane reports whether only the control plane has written to an object.
func byControlPlane(o *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(o.GetManagedFields(), func(by metav1.ManagedFieldsEntry) bool { return !slices.Contains(ControlPlane, by.Manager) })
}

// writtenByOthers returns the paths below a field of an object, such as status, that managedFields
// attributes to clients other than the control plane. [] in a path stands for any list item.
func writtenByOthers(o *unstructured.Unstructured, field string) []string {
	paths := map[string]bool{}
	for _, by := range o.GetManagedFields() {
		if slices.Contains(ControlPlane, by.Manager) || by.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(by.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if below, has := fields["f:"+field]; has {
			addManaged(paths, field, below)
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// addManaged adds the leaves of a set of managed fields to `paths`. The keys have the format of
// FieldsV1: f:NAME is a field, k:KEYS is a list item with the given key fields, and v:VALUE and
// i:NUMBER are other list items.
func addManaged(paths map[string]bool, path string, below any) {
	fields, _ := below.(map[string]any)
	leaf := true
	for name, next := range fields {
		kind, rest, _ := strings.Cut(name, ":")
		switch kind {
		case "f":
			addManaged(paths, path+"."+state.Anonymous(rest), next)
		case "k":
			var keys map[string]any
			_ = json.Unmarshal([]byte(rest), &keys)
			addManaged(paths, path+"["+state.ItemKey(keys)+"]", next)
		case "v", "i":
			addManaged(paths, path+"[]", next)
		default: // A dot stands for the field itself, as opposed to its children.
			continue
		}
		leaf = false
	}
	if leaf {
		paths[path] = true
	}
}
