// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// lister lists pods page by page, and keeps nothing of a page but its records: a
// list as one answer takes some GiB in a large cluster, and one that is streamed as
// the events of a watch takes longer, see docs/performance.md.
type lister struct {
	cache.ListerWatcherWithContext
	// toRecord makes the record of a pod.
	toRecord cache.TransformFunc
}

// A page of pods takes some MiB. One is read while the one before it becomes
// records.
const (
	pageSize      = 500
	pagesInFlight = 1
)

// ListWithContext returns a list of records, of all pods as they are now: which is
// never older than what the reflector asks for.
func (l *lister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	records := &internalversion.List{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := l.ListerWatcherWithContext.ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("a page of pods: %w", err)
		}
		// All pages are of one version.
		records.ResourceVersion = about.GetResourceVersion()
		return page, nil
	})
	pages.PageSize, pages.PageBufferSize = pageSize, pagesInFlight
	options.Limit, options.ResourceVersion, options.ResourceVersionMatch = 0, "", ""
	err := pages.EachListItem(ctx, options, func(object runtime.Object) error {
		r, err := l.toRecord(object)
		if err != nil {
			return err
		}
		records.Items = append(records.Items, r.(*record))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// List and Watch are there for those who know no context.
func (l *lister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

func (l *lister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported tells the reflector to ask for a list.
func (l *lister) IsWatchListSemanticsUnSupported() bool { return true }
