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

// CustomResourceDefinitions is the resource whose objects are watched to learn when an
// optional kind comes or goes.
var CustomResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// CRDName returns the name of the CRD of a kind.
func CRDName(gvk schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.GroupResource().String()
}

// crds watches the metadata of CRDs, each by its name.
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

// watch calls a function after each change of a CRD, until the context ends. Where the
// watch is refused, it calls the function at each attempt, which are half a minute apart
// at least after the first few.
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
		// Only an informer that runs refuses either.
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

// rechecks are the times to wait between further looks at what the cluster serves, after
// a CRD has changed: the API server serves a new kind a little later.
var rechecks = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// follow calls check at once, again after each wake-up and some times more, and every
// retryInterval while it has no answer, until the context ends. If there are no wake-ups,
// it calls check at an interval, which is otherwise 0.
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
