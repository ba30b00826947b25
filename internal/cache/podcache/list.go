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

// pagedLister lists objects page by page, and keeps only their stored form: in a large cluster
// a list in a single response takes several GiB, and a list streamed as watch events takes
// longer, see test/scale/performance.md.
type pagedLister struct {
	// ListerWatcherWithContext is client-go's, which decodes objects into Go types.
	cache.ListerWatcherWithContext
	// convert returns the stored form of a decoded object; nil if objects are stored unchanged.
	convert func(runtime.Object) (runtime.Object, error)
	// source replaces ListerWatcherWithContext as long as it understands the API server. It may
	// be nil.
	source *source
	// resource is the name of the resource, such as pods.
	resource string
	// sizeFactor multiplies the size of the pages. Only the reflector calls the lister, for a
	// single list at a time.
	sizeFactor int64
}

// A page of pods takes some MiB as Go types. The next page is read while a page is converted.
const (
	pageSize      = 500
	pagesInFlight = 1
)

// ListWithContext returns a list of the current objects in their stored form, which is never
// older than the version that the reflector asks for.
//
// A slow API server may need longer for all pages than it keeps their version. Starting over
// with the first page would fail the same way, so the list is then streamed, which does not
// depend on an old version.
func (l *pagedLister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.Limit, options.ResourceVersion, options.ResourceVersionMatch = l.size(), "", ""
	list, err := l.inPages(ctx, options)
	if !apierrors.IsResourceExpired(err) {
		return list, err
	}
	klog.FromContext(ctx).Info("Listing took longer than the API server keeps the version of the list; streaming it instead", "resource", l.resource, "pageSize", l.size())
	list, err = l.streamed(ctx, options)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		// The API server does not stream lists. The next attempt uses larger pages, and the
		// last a single page with all objects, at any cost in memory.
		l.sizeFactor *= growth
		return nil, fmt.Errorf("list %s in pages: their version has expired, and the API server does not stream lists: %w", l.resource, err)
	}
	return list, err
}

// growth is the factor by which pages grow if they cannot be read in time.
const growth = 8

func (l *pagedLister) size() int64 { return pageSize * l.sizeFactor }

// inPages lists all objects page by page.
func (l *pagedLister) inPages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if l.source != nil && l.source.understands(ctx, nil) {
		list, err := l.source.inPages(ctx, options)
		if err == nil || l.source.understands(ctx, err) {
			return list, err
		}
	}
	return l.decodedInPages(ctx, options)
}

// decodedInPages lists all objects page by page, decoded by client-go.
func (l *pagedLister) decodedInPages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &internalversion.List{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := l.ListerWatcherWithContext.ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("a page of %s: %w", l.resource, err)
		}
		// All pages have the same version.
		list.ResourceVersion = about.GetResourceVersion()
		return page, nil
	})
	pages.PageSize, pages.PageBufferSize = options.Limit, pagesInFlight
	options.Limit = 0 // The pager sets the limit of each page.
	err := pages.EachListItem(ctx, options, func(object runtime.Object) error {
		if l.convert != nil {
			var err error
			if object, err = l.convert(object); err != nil {
				return err
			}
		}
		list.Items = append(list.Items, object)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// WatchWithContext returns a watch of the objects in their stored form.
func (l *pagedLister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.source != nil && l.source.understands(ctx, nil) {
		events, err := l.source.watch(ctx, options)
		if err == nil || l.source.understands(ctx, err) {
			return events, err
		}
	}
	events, err := l.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err != nil || l.convert == nil {
		return events, err
	}
	return convertEvents(ctx, events, l.convert), nil
}

// streamed lists all objects from the initial events of a watch.
func (l *pagedLister) streamed(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.SendInitialEvents, options.AllowWatchBookmarks = new(true), true
	options.ResourceVersion, options.ResourceVersionMatch = "", metav1.ResourceVersionMatchNotOlderThan
	options.Limit, options.Continue = 0, ""
	events, err := l.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	// at is the index of each object in the list. A later event of the same object replaces it: objects
	// can change while the list is streamed.
	at := map[types.UID]int{}
	list := &internalversion.List{}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event, ok := <-events.ResultChan():
			if !ok {
				return nil, fmt.Errorf("the stream of %s ended before it was complete: %w", l.resource, io.ErrUnexpectedEOF)
			}
			if event.Type == watch.Error {
				return nil, apierrors.FromObject(event.Object)
			}
			about, err := meta.Accessor(event.Object)
			if err != nil {
				return nil, fmt.Errorf("an event of %s: %w", l.resource, err)
			}
			i, known := at[about.GetUID()]
			switch {
			case event.Type == watch.Bookmark:
				if about.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
					continue
				}
				list.ResourceVersion = about.GetResourceVersion()
				list.Items = slices.DeleteFunc(list.Items, func(o runtime.Object) bool { return o == nil })
				return list, nil
			case event.Type == watch.Deleted && known:
				list.Items[i] = nil
				delete(at, about.GetUID())
			case event.Type == watch.Deleted:
			default:
				if known {
					list.Items[i] = nil
				}
				at[about.GetUID()] = len(list.Items)
				list.Items = append(list.Items, event.Object)
			}
		}
	}
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
