// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// app returns a custom resource with the given spec.size.
func app(size int64) map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "App", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"size": size}, "status": map[string]any{"ready": true},
	}
}

// sizeOf returns an object's spec.size.
func sizeOf(o *unstructured.Unstructured) int64 {
	size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
	return size
}

// answer simulates an API server's response to an update. A nil error means that the object is
// stored.
type answer func(o *unstructured.Unstructured, dryRun bool) error

var errInvalid = apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "App"}, "a", nil)

// apps returns an editedObject in a fake cluster in which the sample exists with size 1.
func apps(t *testing.T, update answer) (*editedObject, *fake.FakeDynamicClient) {
	t.Helper()
	e := &editedObject{target: &target{resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "apps"}, namespaced: true}, sample: app(1)}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{e.resource: "AppList"}, e.object(e.sample))
	client.PrependReactor("update", "apps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		u := action.(clienttesting.UpdateActionImpl)
		dryRun := len(u.UpdateOptions.DryRun) > 0
		if update != nil {
			if err := update(u.Object.(*unstructured.Unstructured), dryRun); err != nil {
				return true, nil, err
			}
		}
		return dryRun, u.Object, nil
	})
	e.recorder = &observe.Recorder{Client: client, Current: map[types.UID]*observe.Version{}}
	return e, client
}

// show records a version of the edited object, as if the recorder had received it.
func (e *editedObject) show(content map[string]any) {
	o := e.object(content)
	if status, is := content["status"]; is {
		o.Object["status"] = status
	}
	e.recorder.Current["1"] = &observe.Version{Resource: "apps.example.com", Object: o}
}

func TestTarget(t *testing.T) {
	for _, tc := range []struct {
		name       string
		namespaced bool
		namespace  string
		want       string
	}{
		{"without a namespace", true, "", "apps.example.com default/a"},
		{"with a namespace", true, "shop", "apps.example.com shop/a"},
		{"of the whole cluster", false, "shop", "apps.example.com /a"},
	} {
		to := &target{resource: schema.GroupVersionResource{Group: "example.com", Resource: "apps"}, namespaced: tc.namespaced}
		content := app(2)
		if tc.namespace != "" {
			content["metadata"].(map[string]any)["namespace"] = tc.namespace
		}
		got := to.written(content, true)
		if got.object != tc.want || got.fields["spec.size"] != "2" || len(got.fields["status.ready"]) > 0 || !got.isNew {
			t.Errorf("%s: %+v, want %s", tc.name, got, tc.want)
		}
		if content["status"] == nil {
			t.Errorf("%s: the content itself has lost its status", tc.name)
		}
	}
}

func TestEditedObject(t *testing.T) {
	conflicts := 2
	e, client := apps(t, func(_ *unstructured.Unstructured, dryRun bool) error {
		if conflicts--; conflicts >= 0 && !dryRun {
			return apierrors.NewConflict(schema.GroupResource{Resource: "apps"}, "a", nil)
		}
		return nil
	})
	before, after, err := e.put(t.Context(), app(2), false)
	if err != nil || sizeOf(before) != 1 || sizeOf(after) != 2 || conflicts != -1 {
		t.Fatalf("from %v to %v, %v, with conflicts left: %d", before, after, err, conflicts)
	}
	if _, after, err = e.put(t.Context(), app(3), true); err != nil || sizeOf(after) != 3 {
		t.Fatalf("a dry run: %v, %v", after, err)
	}
	now, err := e.client().Get(t.Context(), e.name(), metav1.GetOptions{})
	if err != nil || sizeOf(now) != 2 {
		t.Fatalf("after a dry run: %v, %v", now, err)
	}
	now.SetFinalizers([]string{"example.com/clean"})
	if _, err := e.client().Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := e.release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now, err = e.client().Get(t.Context(), e.name(), metav1.GetOptions{}); err != nil || len(now.GetFinalizers()) > 0 {
		t.Errorf("released it has %v, %v", now.GetFinalizers(), err)
	}
	if e.find() != nil {
		t.Error("an object that was not seen is found")
	}
	if e.show(app(2)); e.find() == nil {
		t.Error("the object is not found")
	}
	for range 2 { // The object no longer exists in the second iteration.
		if err := errors.Join(e.remove(t.Context()), e.release(t.Context())); err != nil {
			t.Error(err)
		}
	}
	if err := e.create(t.Context(), app(4)); err != nil {
		t.Error(err)
	}
	if n := len(client.Actions()); n == 0 {
		t.Error("another client was used")
	}
}

// TestRefused checks that refused returns true for 4xx status codes, except for codes unrelated to
// the content.
func TestRefused(t *testing.T) {
	of := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
	for err, want := range map[error]bool{
		of(http.StatusUnprocessableEntity): true, of(http.StatusBadRequest): true, of(http.StatusForbidden): true,
		of(http.StatusNotFound): false, of(http.StatusConflict): false, of(http.StatusTooManyRequests): false, of(http.StatusUnauthorized): false,
		of(http.StatusInternalServerError): false, errors.New("connection refused"): false,
	} {
		if got := refused(err); got != want {
			t.Errorf("%v: %t, want %t", err, got, want)
		}
	}
}
