// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

// book is a lister that serves a list of pods in pages.
type book struct {
	pods int
	// expire is the number of lists whose version expires before their last page.
	expire int
	// asked records the options of each list request.
	asked []metav1.ListOptions
}

func (b *book) source() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			b.asked = append(b.asked, options)
			first, _ := strconv.Atoi(options.Continue)
			last := first + int(options.Limit)
			if last >= b.pods && b.expire > 0 {
				b.expire--
				return nil, apierrors.NewResourceExpired("the version is gone")
			}
			page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			for i := first; i < min(last, b.pods); i++ {
				page.Items = append(page.Items, *podNamed(fmt.Sprint("pod-", i), "a"))
			}
			if last < b.pods {
				page.Continue = strconv.Itoa(last)
			}
			return page, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.ResourceVersion != "7" {
				return nil, fmt.Errorf("a watch from version %q, want one from that of the list", options.ResourceVersion)
			}
			return watch.NewFake(), nil
		},
	}
}

// TestListInPages checks the first list of pods: it is read in consistent pages, its pods are
// stored as records, and it is repeated from the start if its version has expired.
func TestListInPages(t *testing.T) {
	for _, tt := range []struct {
		name string
		book book
		want []string
	}{
		{name: "no pods", want: []string{""}},
		{name: "a page", book: book{pods: pageSize}, want: []string{""}},
		{name: "three pages", book: book{pods: 2*pageSize + 1}, want: []string{"", "500", "1000"}},
		{name: "gone before the last", book: book{pods: 2 * pageSize, expire: 1}, want: []string{"", "500", "", "500"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pods := NewInformer(tt.book.source(), &corev1.Pod{}, 0, cache.Indexers{})
			start(t, pods)
			if !cache.WaitForCacheSync(t.Context().Done(), pods.HasSynced) {
				t.Fatal("the informer is not synced")
			}
			if got := len(pods.GetStore().List()); got != tt.book.pods {
				t.Errorf("%d pods are kept, want %d", got, tt.book.pods)
			}
			var asked []string
			for _, options := range tt.book.asked {
				asked = append(asked, options.Continue)
				if options.ResourceVersion != "" || options.Limit != pageSize {
					t.Errorf("asked for %d pods of version %q, want %d as they are now", options.Limit, options.ResourceVersion, pageSize)
				}
			}
			if diff := cmp.Diff(tt.want, asked); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

// slow is an API server whose lists expire before their second page, because a page takes longer
// than the server keeps the version of a list.
type slow struct {
	pods int
	// streams reports whether the server supports streaming lists.
	streams bool
	// lists and watches record the options of the requests.
	lists, watches []metav1.ListOptions
}

func (s *slow) source() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			s.lists = append(s.lists, options)
			if options.Continue != "" {
				return nil, apierrors.NewResourceExpired("the version is gone")
			}
			page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			for i := range min(s.pods, int(options.Limit)) {
				page.Items = append(page.Items, *podNamed(fmt.Sprint("pod-", i), "a"))
			}
			if len(page.Items) < s.pods {
				page.Continue = "more"
			}
			return page, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			s.watches = append(s.watches, options)
			if options.SendInitialEvents == nil {
				return watch.NewFake(), nil
			}
			if !s.streams {
				return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", field.ErrorList{field.Forbidden(field.NewPath("sendInitialEvents"), "is forbidden for watch")})
			}
			events := watch.NewFakeWithChanSize(s.pods+10, false)
			pod := func(i int) *corev1.Pod {
				p := podNamed(fmt.Sprint("pod-", i), "a")
				p.UID = types.UID(p.Name)
				return p
			}
			for i := range s.pods {
				events.Add(pod(i))
			}
			// Some pods change while the list is streamed.
			events.Add(pod(s.pods))
			events.Modify(pod(0))
			events.Delete(pod(s.pods))
			events.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}})
			events.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}})
			return events, nil
		},
	}
}

// TestListOfASlowServer checks that a list whose pages expire is streamed, or is read in larger
// pages if the server does not support streaming.
func TestListOfASlowServer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		streams bool
		// version is the resourceVersion at which the watch starts. limits lists the page sizes of
		// the list requests.
		version string
		limits  []int64
	}{
		{name: "that streams", streams: true, version: "9", limits: []int64{pageSize, pageSize}},
		{name: "that does not", version: "7", limits: []int64{pageSize, pageSize, growth * pageSize}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := slow{pods: 2 * pageSize, streams: tt.streams}
			pods := NewInformer(server.source(), &corev1.Pod{}, 0, cache.Indexers{})
			start(t, pods)
			ctx, cancel := context.WithTimeout(t.Context(), waitfor.Patience)
			defer cancel()
			if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
				t.Fatalf("the informer is not synced after %d lists", len(server.lists))
			}
			if got := len(pods.GetStore().List()); got != server.pods {
				t.Errorf("%d pods are kept, want %d", got, server.pods)
			}
			if got := pods.LastSyncResourceVersion(); got != tt.version {
				t.Errorf("the list is of version %s, want %s", got, tt.version)
			}
			var limits []int64
			for _, options := range server.lists {
				limits = append(limits, options.Limit)
			}
			if diff := cmp.Diff(tt.limits, limits); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}
