// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// NewList returns an empty list for a workload kind. It is a typed list if the scheme contains the
// kind, and unstructured otherwise.
func NewList(kind *workload.Kind) client.ObjectList {
	gvk := kind.GroupVersion().WithKind(kind.Kind + "List")
	if object, err := Scheme.New(gvk); err == nil {
		if list, ok := object.(client.ObjectList); ok {
			return list
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	return list
}
