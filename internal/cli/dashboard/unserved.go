// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// unlessUnserved returns a source whose requests fail with NotFound if the cluster does not serve the kind. An
// API server checks rights first: a user without the right to list the kind gets Forbidden in either case.
func unlessUnserved(source cache.ListerWatcher, config *rest.Config, kind schema.GroupVersionResource) cache.ListerWatcher {
	from := cache.ToListerWatcherWithContext(source)
	explain := func(err error) error {
		if apierrors.IsForbidden(err) && isUnserved(config, kind) {
			return apierrors.NewNotFound(kind.GroupResource(), "")
		}
		return err
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContext(ctx, o)
			return list, explain(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := from.WatchWithContext(ctx, o)
			return w, explain(err)
		},
	}
}

// isUnserved reports whether the API server says that it does not serve a kind. All users may ask that.
func isUnserved(config *rest.Config, kind schema.GroupVersionResource) bool {
	config = rest.CopyConfig(config)
	config.Timeout = askWithin
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false
	}
	served, err := api.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource })
}
