// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// event returns a pod's event, encoded by an API server as protobuf or JSON.
func event(t testing.TB, protobuf bool, kind, name string, annotations map[string]string) []byte {
	t.Helper()
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: annotations}}
	written := func(raw []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	if !protobuf {
		return append(written(json.Marshal(map[string]any{"type": kind, "object": &object})), '\n')
	}
	envelope := runtime.Unknown{Raw: written(object.Marshal())}
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), written(envelope.Marshal())...)}}
	return protobufEncoding.join(written(e.Marshal()))
}

// frames decodes all frames in a stream. `initial` is set for a streaming list.
func frames(stream []byte, encoding *encoding, initial bool) ([]frame, error) {
	s := newSplitter(io.NopCloser(bytes.NewReader(stream)), encoding, initial)
	var all []frame
	for {
		f, err := s.next()
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
}

func TestFrames(t *testing.T) {
	big := string(bytes.Repeat([]byte("a"), 100_000))
	for name, protobuf := range map[string]bool{"json": false, "protobuf": true} {
		t.Run(name, func(t *testing.T) {
			encoding := map[bool]*encoding{false: encodingOf("application/json"), true: encodingOf("application/vnd.kubernetes.protobuf;stream=watch")}[protobuf]
			stream := bytes.Join([][]byte{
				event(t, protobuf, "ADDED", "one", nil),
				event(t, protobuf, "ADDED", big, nil),
				event(t, protobuf, "BOOKMARK", "", map[string]string{metav1.InitialEventsAnnotationKey: "true"}),
				event(t, protobuf, "DELETED", "two", nil),
			}, nil)
			all, err := frames(stream, encoding, true)
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			var passed []byte
			var events []fault.Event
			for _, f := range all {
				passed, events = append(passed, f.bytes...), append(events, f.event)
			}
			if !bytes.Equal(passed, stream) {
				t.Error("what is passed on is not what came")
			}
			for i, want := range []fault.Event{
				{Type: "ADDED", Namespace: "shop", Name: "one", Initial: true}, {Type: "ADDED", Namespace: "shop", Name: big, Initial: true},
				{Type: "BOOKMARK", Namespace: "shop", Initial: true}, {Type: "DELETED", Namespace: "shop", Name: "two"},
			} {
				if i >= len(events) || events[i] != want {
					t.Errorf("event %d: want %.60v", i, want)
				}
			}
			// A stream that is interrupted in the middle of an event must not end with io.EOF.
			if _, err := frames(stream[:len(stream)-3], encoding, false); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("a stream that breaks off: %v", err)
			}
		})
	}
}

// TestUnknownEncoding checks that a stream with an unknown encoding passes through unchanged.
func TestUnknownEncoding(t *testing.T) {
	stream := bytes.Repeat([]byte("\xd9\xd9\xf7"), 5000)
	all, err := frames(stream, encodingOf("application/cbor-seq"), false)
	var passed []byte
	for _, f := range all {
		passed = append(passed, f.bytes...)
	}
	if !errors.Is(err, io.EOF) || !bytes.Equal(passed, stream) {
		t.Errorf("%d of %d bytes, %v", len(passed), len(stream), err)
	}
}

// FuzzFrames checks that the decoder does not panic on any stream, and that decoding the returned
// frames again yields the same frames.
func FuzzFrames(f *testing.F) {
	for _, protobuf := range []bool{false, true} {
		f.Add(protobuf, append(event(f, protobuf, "ADDED", "one", nil), event(f, protobuf, "DELETED", "one", nil)...))
	}
	f.Add(true, []byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Add(false, []byte(`{"type":3} [] null {"type":"ADDED","object":"k8s"}`))
	f.Fuzz(func(t *testing.T, protobuf bool, stream []byte) {
		encoding := &jsonEncoding
		if protobuf {
			encoding = &protobufEncoding
		}
		first, _ := frames(stream, encoding, false)
		var passed []byte
		for _, f := range first {
			passed = append(passed, f.bytes...)
		}
		second, err := frames(passed, encoding, false)
		if !errors.Is(err, io.EOF) || len(first) != len(second) {
			t.Fatalf("%d frames became %d: %v", len(first), len(second), err)
		}
		for i := range first {
			if !bytes.Equal(first[i].bytes, second[i].bytes) || first[i].event != second[i].event {
				t.Errorf("frame %d became another", i)
			}
		}
	})
}
