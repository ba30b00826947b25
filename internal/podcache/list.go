// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"
)

// pagedLister lists pods page by page, and keeps only the records of a page: in a large
// cluster a list in one response takes several GiB, and a list streamed as watch events
// takes longer, see docs/performance.md.
type pagedLister struct {
	cache.ListerWatcherWithContext
	// toRecord returns the record of a pod.
	toRecord cache.TransformFunc
	// sizeFactor multiplies the size of the pages. Only the reflector calls the lister,
	// one list after the other.
	sizeFactor int64
}

// A page of pods takes some MiB. One is read while the one before it is converted.
const (
	pageSize      = 500
	pagesInFlight = 1
)

// ListWithContext returns a list of records of all pods as they are now, which is never
// older than what the reflector asks for.
//
// A slow API server may need longer for all pages than it keeps their version. To start
// over with the first page would end the same way, so the list is then streamed, which
// does not depend on an old version.
func (l *pagedLister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	records, err := l.inPages(ctx, options)
	if !apierrors.IsResourceExpired(err) {
		return records, err
	}
	klog.FromContext(ctx).Info("Listing pods took longer than the API server keeps their version; streaming the list instead", "pageSize", l.size())
	records, err = l.streamed(ctx, options)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		// The API server does not stream lists. The next attempt uses larger pages, and
		// the last one a single page with all pods, whatever memory that takes.
		l.sizeFactor *= growth
		return nil, fmt.Errorf("list pods in pages: their version has expired, and the API server does not stream lists: %w", err)
	}
	return records, err
}

// growth is the factor by which pages grow if they cannot be read in time.
const growth = 8

func (l *pagedLister) size() int64 { return pageSize * l.sizeFactor }

// inPages lists all pods page by page.
func (l *pagedLister) inPages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
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
		// All pages have the same version.
		records.ResourceVersion = about.GetResourceVersion()
		return page, nil
	})
	pages.PageSize, pages.PageBufferSize = l.size(), pagesInFlight
	options.Limit, options.ResourceVersion, options.ResourceVersionMatch = 0, "", ""
	if err := pages.EachListItem(ctx, options, func(object runtime.Object) error { return l.keep(records, object) }); err != nil {
		return nil, err
	}
	return records, nil
}

// streamed lists all pods from the initial events of a watch.
func (l *pagedLister) streamed(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.SendInitialEvents, options.AllowWatchBookmarks = new(true), true
	options.ResourceVersion, options.ResourceVersionMatch = "", metav1.ResourceVersionMatchNotOlderThan
	options.Limit, options.Continue = 0, ""
	events, err := l.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	// A pod can change while the list is streamed.
	at := map[types.UID]int{}
	records := &internalversion.List{}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event, ok := <-events.ResultChan():
			if !ok {
				return nil, fmt.Errorf("the stream of pods ended before it was complete: %w", io.ErrUnexpectedEOF)
			}
			if event.Type == watch.Error {
				return nil, apierrors.FromObject(event.Object)
			}
			about, err := meta.Accessor(event.Object)
			if err != nil {
				return nil, fmt.Errorf("an event of pods: %w", err)
			}
			i, known := at[about.GetUID()]
			switch {
			case event.Type == watch.Bookmark:
				if about.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
					continue
				}
				records.ResourceVersion = about.GetResourceVersion()
				records.Items = slices.DeleteFunc(records.Items, func(o runtime.Object) bool { return o == nil })
				return records, nil
			case event.Type == watch.Deleted && known:
				records.Items[i] = nil
				delete(at, about.GetUID())
			case event.Type == watch.Deleted:
			default:
				if known {
					records.Items[i] = nil
				}
				at[about.GetUID()] = len(records.Items)
				if err := l.keep(records, event.Object); err != nil {
					return nil, err
				}
			}
		}
	}
}

// keep adds the record of a pod to a list.
func (l *pagedLister) keep(records *internalversion.List, pod runtime.Object) error {
	r, err := l.toRecord(pod)
	if err != nil {
		return err
	}
	records.Items = append(records.Items, r.(*record))
	return nil
}

// List and Watch implement [cache.ListerWatcher], which has no contexts.
func (l *pagedLister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

func (l *pagedLister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported makes the reflector ask for a list.
func (l *pagedLister) IsWatchListSemanticsUnSupported() bool { return true }
