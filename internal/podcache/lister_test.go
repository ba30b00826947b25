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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// book is a list of pods that is served in pages.
type book struct {
	pods int
	// expire is how often the version of the list is gone before its last page.
	expire int
	// asked are the pages that were asked for.
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

// The first list comes in pages, consistent ones, whose pods are kept as records;
// and begins anew when its version is gone.
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
