// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// TestForbiddenOrUnserved checks that a user without the permission to list a kind gets NotFound if
// the cluster does not serve the kind, and Forbidden if it does.
func TestForbiddenOrUnserved(t *testing.T) {
	served := metav1.APIResourceList{GroupVersion: "argoproj.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "rollouts", Kind: "Rollout"}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/argoproj.io/v1alpha1" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(served)
	}))
	defer server.Close()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "rollouts"}, "", errors.New("no"))
	source := &cache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, forbidden },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, forbidden },
	}
	for _, tc := range []struct {
		name     string
		host     string
		kind     schema.GroupVersionResource
		unserved bool
	}{
		{"served", server.URL, schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}, false},
		{"another kind of its group", server.URL, schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "experiments"}, true},
		{"another group", server.URL, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "rollouts"}, true},
		{"no answer", "http://127.0.0.1:1", schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "rollouts"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			of := cache.ToListerWatcherWithContext(unlessUnserved(source, &rest.Config{Host: tc.host}, tc.kind))
			_, listed := of.ListWithContext(t.Context(), metav1.ListOptions{})
			_, watched := of.WatchWithContext(t.Context(), metav1.ListOptions{})
			for _, err := range []error{listed, watched} {
				if apierrors.IsNotFound(err) != tc.unserved || apierrors.IsForbidden(err) == tc.unserved {
					t.Errorf("%v, want that it is not served: %v", err, tc.unserved)
				}
			}
		})
	}
}
