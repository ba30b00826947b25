// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"encoding/binary"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
)

var errNotAcceptable = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable}}

// TestFallback checks that client-go decodes a list that does not have the expected protobuf
// encoding, and all later responses.
func TestFallback(t *testing.T) {
	jsonList := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	compressed := kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: []byte{}, ContentEncoding: "gzip"}
	for name, list := range map[string]handle{
		"406":                    refuse(errNotAcceptable),
		"JSON":                   body(jsonList),
		"nothing":                body(),
		"encoded otherwise":      body(wire.Prefix, marshal(t, &compressed)),
		"another kind":           body(inEnvelope("NodeList", nil)),
		"a damaged list":         body(inEnvelope("PodList", []byte{0xff, 0xff})),
		"a damaged pod":          body(inEnvelope("PodList", []byte{0x12, 2, 0xff, 0xff})),
		"an item of 16 MiB":      body(inEnvelope("PodList", append([]byte{0x12}, binary.AppendUvarint(nil, wire.MaxObject+1)...))),
		"a list that is not one": body(wire.Prefix, []byte{0x08, 1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run(t, &script{lists: []handle{list}, watches: []handle{quiet}}, &corev1.Pod{})
			s.expect(t, "typed 70", "watched 71")
			s.expectVersion(t, "72")
			s.expectFallbacks(t, 1)
			if diff := cmp.Diff([]string{"list "}, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFallbackOfAWatch checks that a watch ends if an event does not have the expected protobuf
// encoding, and that client-go then continues.
func TestFallbackOfAWatch(t *testing.T) {
	jsonEvent := []byte(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`)
	asJSON := marshal(t, &metav1.WatchEvent{Type: "ADDED", Object: kruntime.RawExtension{Raw: []byte(`{"kind":"Pod"}`)}})
	for name, events := range map[string][]byte{
		"an event with JSON":     append(binary.BigEndian.AppendUint32(nil, uint32(len(asJSON))), asJSON...),
		"JSON after a length":    append(binary.BigEndian.AppendUint32(nil, uint32(len(jsonEvent))), jsonEvent...),
		"an event of a node":     frame(t, watch.Added, "Node", &corev1.Node{}),
		"an unknown event":       frame(t, "CHANGED", "Pod", &corev1.Pod{}),
		"an error with a table":  frame(t, watch.Error, "Table", &corev1.Pod{}),
		"a damaged pod":          frame(t, watch.Added, "Pod", damaged{}),
		"a damaged bookmark":     frame(t, watch.Bookmark, "Pod", damaged{}),
		"an error that is worse": frame(t, watch.Error, "Status", damaged{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestSource(t, &script{watches: []handle{body(events)}})
			pods, err := w.watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for e := range pods.ResultChan() {
				t.Errorf("got %v", e)
			}
			if w.understands(t.Context(), nil) {
				t.Error("the next watch is not left to client-go")
			}
		})
	}
	t.Run("406", func(t *testing.T) {
		s := run(t, &script{
			lists:   []handle{body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("a", "1")))},
			watches: []handle{refuse(errNotAcceptable)},
		}, &corev1.Pod{})
		s.expect(t, "a 1", "watched 71")
		s.expectVersion(t, "72")
		s.expectFallbacks(t, 1)
	})
}

// damaged is an object that marshals to invalid protobuf.
type damaged struct{}

func (damaged) Marshal() ([]byte, error) { return []byte{0xff}, nil }
