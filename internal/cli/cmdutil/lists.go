// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
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

// SetKinds sets the kind of a list of Tidekeeper's objects, and of each object in the list. The
// client leaves these kinds empty.
func SetKinds(list client.ObjectList, kind string) {
	list.GetObjectKind().SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(kind + "List"))
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		o.GetObjectKind().SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(kind))
		return nil
	})
}

// Events reads the events about a cluster-scoped object. If the user is not allowed to list events,
// known is false, and Events prints a note that the output lacks events.
func Events(ctx context.Context, e *Env, c client.Client, kind, name string) (events []corev1.Event, known bool, err error) {
	list := &corev1.EventList{}
	about := client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}
	if err := c.List(ctx, list, client.InNamespace(metav1.NamespaceDefault), about); apierrors.IsForbidden(err) {
		e.Console.Note("events are left out: " + err.Error())
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	return list.Items, true, nil
}
