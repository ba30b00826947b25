// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

// CustomResourceDefinitions is the resource of CRDs, which are watched to detect that an optional
// kind was installed or removed.
var CustomResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// CRDName returns the name of the CRD that defines a kind, such as gadgets.example.com.
func CRDName(gvk schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.GroupResource().String()
}

// crds watches the metadata of the CRDs that are listed in names.
type crds struct {
	client metadata.Interface
	names  []string
}

func newCRDs(cfg *rest.Config, names []string) (*crds, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create the client for CRDs: %w", err)
	}
	return &crds{client: client, names: names}, nil
}

// watch calls `changed` after each change of a CRD, until the context ends. It also calls `changed`
// after each failed attempt to watch, so that optional kinds are detected without the right to
// watch CRDs. After the first few failures, the attempts are at least half a minute apart.
func (c *crds) watch(ctx context.Context, changed func()) {
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
	var watches sync.WaitGroup
	for _, name := range c.names {
		informer := metadatainformer.NewFilteredMetadataInformer(c.client, CustomResourceDefinitions, metav1.NamespaceAll, 0, nil, func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}).Informer()
		// AddEventHandler and SetWatchErrorHandlerWithContext cannot fail, because the informer is
		// not running yet.
		_, _ = informer.AddEventHandler(handler)
		_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) {
				ctrl.LoggerFrom(ctx).V(1).Info("May not watch the CRD of an optional kind", "crd", name, "error", err.Error())
			} else {
				toolscache.DefaultWatchErrorHandler(ctx, r, err)
			}
			changed()
		})
		watches.Go(func() { informer.RunWithContext(ctx) })
	}
	watches.Wait()
}

// rechecks lists the delays between repeated discovery requests after a CRD has changed. The
// requests are repeated because the API server does not serve a new kind immediately.
var rechecks = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// follow calls `check` repeatedly until the context ends. The first call is immediate. When it
// receives an element from `wake`, it calls `check` at once, and again after each delay in
// rechecks. If a call returns false, the next call follows after retryInterval at the latest. If
// `interval` is not 0, it is the maximum pause between two calls.
func follow(ctx context.Context, wake <-chan struct{}, interval time.Duration, check func(context.Context) bool) {
	var pending []time.Duration
	for {
		next := time.Duration(-1)
		if !check(ctx) {
			next = retryInterval
		} else if len(pending) > 0 {
			next, pending = pending[0], pending[1:]
		} else if interval > 0 {
			next = interval
		}
		var timer <-chan time.Time
		if next >= 0 {
			timer = time.After(next)
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
			pending = rechecks
		case <-timer:
		}
	}
}
