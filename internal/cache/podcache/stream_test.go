// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

// TestPagesAndEvents checks that the pods of pages and events become records. After a bookmark, the
// watch must continue at the bookmark's resourceVersion.
func TestPagesAndEvents(t *testing.T) {
	big := versioned("big", "12")
	big.Annotations = map[string]string{"a": strings.Repeat("a", 1<<20)}
	about := metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: new(int64(1))}
	s := run(t, &script{
		lists: []handle{
			body(podPage(t, about, versioned("a", "1"), versioned("b", "2"))),
			body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("c", "3"))),
		},
		watches: []handle{body(
			frame(t, watch.Added, "Pod", versioned("d", "10")), frame(t, watch.Modified, "Pod", versioned("a", "11")),
			frame(t, watch.Added, "Pod", big), frame(t, watch.Deleted, "Pod", versioned("b", "13")),
			frame(t, watch.Bookmark, "Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}}),
		)},
	}, &corev1.Pod{})
	s.expect(t, "a 11", "big 12", "c 3", "d 10")
	s.expectVersion(t, "20")
	s.expectFallbacks(t, 0)
	if diff := cmp.Diff([]string{"list ", "list more", "watch 7"}, s.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{pageSize + 1}, s.listed); diff != "" {
		t.Errorf("announced pods (-want +got):\n%s", diff)
	}
}

// TestPagesOfALargeList checks that a large list is read in larger pages after the first page.
func TestPagesOfALargeList(t *testing.T) {
	for _, tt := range []struct {
		remaining int64
		want      string
	}{
		{25_000 - pageSize, "list more"}, {150_000 - pageSize, "list more 3000"}, {1_000_000, "list more 5000"},
	} {
		s := run(t, &script{
			lists: []handle{
				body(podPage(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: &tt.remaining}, versioned("a", "1"))),
				body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("b", "2"))),
			},
			watches: []handle{quiet},
		}, &corev1.Pod{})
		s.expect(t, "a 1", "b 2")
		if diff := cmp.Diff([]string{"list ", tt.want}, s.requests()[:2]); diff != "" {
			t.Errorf("%d remain: requests (-want +got):\n%s", tt.remaining, diff)
		}
	}
}

// TestWatchThatEnds checks that a watch that ends, even with an error, is reopened at the last
// resourceVersion that it has sent.
func TestWatchThatEnds(t *testing.T) {
	list := body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("a", "1")))
	added := frame(t, watch.Added, "Pod", versioned("b", "10"))
	again := body(frame(t, watch.Added, "Pod", versioned("c", "11")))
	for _, tt := range []struct {
		name string
		sent handle
	}{
		{"in order", ended(added)},
		{"cut", cut(added)},
		{"half a frame", cut(added, added[:len(added)/2])},
		{"half a length", cut(added, added[:2])},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := run(t, &script{lists: []handle{list}, watches: []handle{tt.sent, again}}, &corev1.Pod{})
			s.expect(t, "a 1", "b 10", "c 11")
			s.expectFallbacks(t, 0)
			if diff := cmp.Diff([]string{"list ", "watch 7", "watch 10"}, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchThatEndsAtOnce checks that a watch that ends immediately, without an event, is reopened
// without repeating the list.
func TestWatchThatEndsAtOnce(t *testing.T) {
	list := body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("a", "1")))
	again := body(frame(t, watch.Added, "Pod", versioned("c", "11")))
	for name, sent := range map[string]handle{"in order": ended(), "cut": cut()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run(t, &script{lists: []handle{list}, watches: []handle{sent, sent, again}}, &corev1.Pod{})
			s.expect(t, "a 1", "c 11")
			if diff := cmp.Diff([]string{"list ", "watch 7", "watch 7", "watch 7"}, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestErrorsOfTheServer checks that the informer repeats the list after an API server's error, as
// it does with client-go's watch.
func TestErrorsOfTheServer(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old")
	page := func(version string, names ...string) handle {
		var pods []*corev1.Pod
		for _, name := range names {
			pods = append(pods, versioned(name, version))
		}
		return body(podPage(t, metav1.ListMeta{ResourceVersion: version}, pods...))
	}
	more := body(podPage(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, versioned("a", "1")))
	huge := binary.BigEndian.AppendUint32(nil, wire.MaxObject+1)
	for _, tt := range []struct {
		name           string
		lists, watches []handle
		want           []string
	}{
		{"410 for a watch", []handle{page("7", "a"), page("9", "b")}, []handle{refuse(gone), quiet}, []string{"list ", "watch 7", "list ", "watch 9"}},
		{"410 in a watch", []handle{page("7", "a"), page("9", "b")}, []handle{body(frame(t, watch.Error, "Status", &gone.ErrStatus)), quiet}, []string{"list ", "watch 7", "list ", "watch 9"}},
		{"a huge event", []handle{page("7", "a"), page("9", "b")}, []handle{body(huge), quiet}, []string{"list ", "watch 7", "list ", "watch 9"}},
		{"500 for a list", []handle{refuse(apierrors.NewInternalError(context.Canceled)), page("9", "b")}, []handle{quiet}, []string{"list ", "list ", "watch 9"}},
		{"half a list", []handle{cut([]byte("k8s")), page("9", "b")}, []handle{quiet}, []string{"list ", "list ", "watch 9"}},
		// After a page has expired, the list is streamed. The next watch starts at the streamed
		// list's resourceVersion.
		{"410 for a page", []handle{more, refuse(gone)}, []handle{body(
			frame(t, watch.Added, "Pod", versioned("b", "9")),
			frame(t, watch.Bookmark, "Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}),
		), quiet}, []string{"list ", "list more", "watch ", "watch 9"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := run(t, &script{lists: tt.lists, watches: tt.watches}, &corev1.Pod{})
			s.expect(t, "b 9")
			waitfor.Nil(t, "all requests have come", func() error {
				if requests := s.requests(); len(requests) < len(tt.want) {
					return fmt.Errorf("%q have", requests)
				}
				return nil
			})
			if diff := cmp.Diff(tt.want, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			s.expectFallbacks(t, 0)
		})
	}
}

// TestNodes checks that Nodes are decoded in the same way as pods, and are stored as Nodes.
func TestNodes(t *testing.T) {
	node := func(version string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version, Labels: map[string]string{"a": version}},
			Status:     corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}},
		}
	}
	list := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Node{*node("1")}}
	s := run(t, &script{
		lists: []handle{body(inEnvelope("NodeList", marshal(t, list)))},
		watches: []handle{body(
			frame(t, watch.Modified, "Node", node("8")),
			frame(t, watch.Bookmark, "Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}),
		)},
	}, &corev1.Node{})
	s.expect(t, "n 8")
	s.expectVersion(t, "9")
	got, _, _ := s.pods.GetStore().GetByKey("n")
	want := node("8")
	want.Status.Images = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the node (-want +got):\n%s", diff)
	}
}

// TestPagesAreAskedForAhead checks that a page is requested as soon as the previous page's continue
// token has been read.
func TestPagesAreAskedForAhead(t *testing.T) {
	asked := make(chan struct{})
	first := podPage(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, typicalPod(1))
	s := run(t, &script{
		lists: []handle{
			func(w http.ResponseWriter, _ url.Values) {
				_, _ = w.Write(first[:200])
				w.(http.Flusher).Flush()
				select {
				case <-asked:
				case <-time.After(waitfor.Patience):
					t.Error("the second page is not asked for before the first has ended")
				}
				_, _ = w.Write(first[200:])
			},
			func(w http.ResponseWriter, query url.Values) {
				close(asked)
				body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("b", "2")))(w, query)
			},
		},
		watches: []handle{quiet},
	}, &corev1.Pod{})
	s.expect(t, "b 2", typicalPod(1).Name+" "+strconv.Itoa(1_000_001))
}

// TestStoppedWatch checks that a watch ends after Stop, whether it is idle or has events that no
// one receives.
func TestStoppedWatch(t *testing.T) {
	var events []byte
	for i := range 4 * eventsAhead {
		events = append(events, frame(t, watch.Added, "Pod", versioned("a", strconv.Itoa(i)))...)
	}
	for name, sent := range map[string]handle{"quiet": quiet, "busy": body(events)} {
		t.Run(name, func(t *testing.T) {
			w := newTestSource(t, &script{watches: []handle{sent}})
			pods, err := w.watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pods.Stop()
			for range pods.ResultChan() { // The channel is closed.
			}
		})
	}
}

// TestCutPage checks that a page whose connection is aborted results in an error.
func TestCutPage(t *testing.T) {
	whole := podPage(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, typicalPod(1), typicalPod(2))
	count := func(page []byte) (items int, err error) {
		err = wire.ReadPage(bytes.NewReader(page), "PodList", func(*metav1.ListMeta) {}, func([]byte) error { items++; return nil })
		return items, err
	}
	if items, err := count(whole); err != nil || items != 2 {
		t.Errorf("%d items, %v", items, err)
	}
	for length := len(wire.Prefix); length < len(whole)-4; length += 7 {
		if _, err := count(whole[:length]); err == nil {
			t.Fatalf("%d bytes of %d are taken for a page", length, len(whole))
		}
	}
}
