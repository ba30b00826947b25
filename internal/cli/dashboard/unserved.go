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

// unlessUnserved wraps the source of a kind. If the cluster does not serve the kind, the requests
// of the wrapper fail with NotFound, even for a user who is not allowed to list the kind. An API
// server itself would return Forbidden, because it checks permissions first.
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

// isUnserved reports whether the kind is missing from the API server's discovery, which all users
// are allowed to read.
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
