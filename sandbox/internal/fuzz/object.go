// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// editedObject is the object to edit in a sandbox. Requests use the client of the sandbox's
// recorder, which has administrator rights and bypasses the fault proxy.
type editedObject struct {
	*target
	sample   map[string]any
	recorder *observe.Recorder
}

// client returns a client for objects of the edited object's kind and namespace.
func (e *editedObject) client() dynamic.ResourceInterface {
	all := e.recorder.Client.Resource(e.resource)
	if !e.namespaced {
		return all
	}
	return all.Namespace(e.object(e.sample).GetNamespace())
}

func (e *editedObject) name() string { return e.object(e.sample).GetName() }

// find returns the last recorded version of the object, or nil if the object does not exist.
func (e *editedObject) find() *unstructured.Unstructured {
	o := e.object(e.sample)
	return e.recorder.Find(workload.Target{Resource: e.resource.GroupResource().String(), Namespace: o.GetNamespace(), Name: o.GetName()})
}

// create creates the edited object with the given content.
func (e *editedObject) create(ctx context.Context, content map[string]any) error {
	_, err := e.client().Create(ctx, e.object(content), metav1.CreateOptions{})
	return err
}

// put replaces the content of the edited object, and returns the object before and after the
// update. A dry run changes nothing. Conflicts are retried.
func (e *editedObject) put(ctx context.Context, content map[string]any, dryRun bool) (before, after *unstructured.Unstructured, err error) {
	options := metav1.UpdateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for {
		if before, err = e.client().Get(ctx, e.name(), metav1.GetOptions{}); err != nil {
			return nil, nil, err
		}
		after, err = e.client().Update(ctx, with(before, content), options)
		if !apierrors.IsConflict(err) {
			return before, after, err
		}
	}
}

// remove deletes the object, but does not wait for its removal.
func (e *editedObject) remove(ctx context.Context) error {
	err := e.client().Delete(ctx, e.name(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// release removes the object's finalizers on behalf of the operator, which must not be running.
func (e *editedObject) release(ctx context.Context) error {
	_, err := e.client().Patch(ctx, e.name(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// with returns a copy of an object with the given content. The copy keeps the common fields of the
// object: apiVersion, kind, metadata and status.
func with(o *unstructured.Unstructured, content map[string]any) *unstructured.Unstructured {
	o = o.DeepCopy()
	maps.DeleteFunc(o.Object, func(field string, _ any) bool { return !slices.Contains(common, field) })
	for field, value := range (&unstructured.Unstructured{Object: content}).DeepCopy().Object {
		if !slices.Contains(common, field) {
			o.Object[field] = value
		}
	}
	return o
}

// sameContent reports whether two objects are equal, ignoring the common fields: apiVersion, kind,
// metadata and status.
func sameContent(a, b *unstructured.Unstructured) bool {
	content := func(o *unstructured.Unstructured) map[string]any {
		fields := maps.Clone(o.Object)
		maps.DeleteFunc(fields, func(field string, _ any) bool { return slices.Contains(common, field) })
		return fields
	}
	return reflect.DeepEqual(content(a), content(b))
}

// refused reports whether an error means that the API server rejects the object's content. It
// returns false for other errors, such as conflicts, overload and missing objects.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := int(status.Status().Code); code {
	case http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusUnauthorized:
		return false
	default:
		return code >= 400 && code < 500
	}
}
