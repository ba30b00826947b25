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

// pagedLister lists objects page by page, and converts each page to the form that the informer
// stores. In a large cluster, a list in a single response takes several GiB, and a list that is
// streamed as watch events takes longer: see test/scale/performance.md.
type pagedLister struct {
	// ListerWatcherWithContext is client-go's lister, which decodes objects into Go types.
	cache.ListerWatcherWithContext
	// convert returns a decoded object in the form that the informer stores. It is nil if objects
	// are stored unchanged.
	convert func(runtime.Object) (runtime.Object, error)
	// source is used instead of ListerWatcherWithContext as long as the API server responds in the
	// expected protobuf encoding. It may be nil.
	source *source
	// resource is the plural name of the kind, such as pods.
	resource string
	// sizeFactor multiplies the page size. It needs no lock, because only the reflector uses the
	// lister, and it requests one list at a time.
	sizeFactor int64
}

// pageSize is the number of objects in a page. A page of pods takes some MiB as Go types.
// pagesInFlight is the number of pages that are read in advance while a page is converted.
const (
	pageSize      = 500
	pagesInFlight = 1
)

// ListWithContext returns a list of the current objects in the form that the informer stores. The
// list is never older than the version that the reflector requests.
//
// If the API server is slow, the version of the list may expire before all pages have been read. A
// second attempt would fail in the same way. The objects are then read from the initial events of a
// watch, which do not depend on an old version.
func (l *pagedLister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.Limit, options.ResourceVersion, options.ResourceVersionMatch = l.size(), "", ""
	list, err := l.inPages(ctx, options)
	if !apierrors.IsResourceExpired(err) {
		return list, err
	}
	klog.FromContext(ctx).Info("Listing took longer than the API server keeps the version of the list; streaming it instead", "resource", l.resource, "pageSize", l.size())
	list, err = l.streamed(ctx, options)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		// The API server does not support streaming lists. Each further attempt uses larger pages,
		// until a single page contains all objects, although such a page can take much memory.
		l.sizeFactor *= growth
		return nil, fmt.Errorf("list %s in pages: their version has expired, and the API server does not stream lists: %w", l.resource, err)
	}
	return list, err
}

// growth is the factor by which the page size grows after a list whose version expired.
const growth = 8

func (l *pagedLister) size() int64 { return pageSize * l.sizeFactor }

// inPages lists all objects page by page, with l.source if possible, and otherwise with client-go.
func (l *pagedLister) inPages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if l.source != nil && l.source.understands(ctx, nil) {
		list, err := l.source.inPages(ctx, options)
		if err == nil || l.source.understands(ctx, err) {
			return list, err
		}
	}
	return l.decodedInPages(ctx, options)
}

// decodedInPages lists all objects page by page, with client-go as the decoder.
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
		// The resourceVersion is the same for all pages.
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

// WatchWithContext returns a watch whose events contain objects in the form that the informer
// stores.
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

// streamed lists all objects from the initial events of a watch instead of from pages.
func (l *pagedLister) streamed(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.SendInitialEvents, options.AllowWatchBookmarks = new(true), true
	options.ResourceVersion, options.ResourceVersionMatch = "", metav1.ResourceVersionMatchNotOlderThan
	options.Limit, options.Continue = 0, ""
	events, err := l.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	// at maps each object's UID to its index in the list. An object can change while the list is
	// streamed. The object of its later event then replaces the object of its earlier event.
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

// List and Watch implement [cache.ListerWatcher], whose methods take no contexts.
func (l *pagedLister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

func (l *pagedLister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported makes the reflector call ListWithContext instead of streaming the
// list itself.
func (l *pagedLister) IsWatchListSemanticsUnSupported() bool { return true }
