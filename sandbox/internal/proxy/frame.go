// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/framer"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// frame is a watch event together with its encoded form.
type frame struct {
	bytes []byte
	event fault.Event
	// object is the event's encoded object.
	object []byte
	// initialEnd is set for the bookmark event that ends the initial list of a streaming list (a
	// watch that begins with a list).
	initialEnd bool
}

// encoding encodes and decodes a stream's events.
type encoding struct {
	// split returns a reader of the events in a stream, without their framing.
	split func(io.ReadCloser) io.ReadCloser
	// join adds framing to an encoded event.
	join func([]byte) []byte
	// decode returns the type of an encoded event, and the event's object, which remains encoded.
	decode func([]byte) (kind string, object []byte, err error)
	// status encodes an ERROR event with the given Status.
	status func(metav1.Status) ([]byte, error)
}

// encodingOf returns the encoding for a content type, or nil if the content type is unknown.
func encodingOf(contentType string) *encoding {
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return nil
	case mediaType == runtime.ContentTypeJSON:
		return &jsonEncoding
	case mediaType == runtime.ContentTypeProtobuf:
		return &protobufEncoding
	default:
		return nil
	}
}

var jsonEncoding = encoding{
	split: framer.NewJSONFramedReader,
	join:  func(raw []byte) []byte { return append(raw, '\n') },
	decode: func(raw []byte) (string, []byte, error) {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		err := json.Unmarshal(raw, &event)
		return event.Type, event.Object, err
	},
	status: func(status metav1.Status) ([]byte, error) {
		return json.Marshal(metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Object: &status}})
	},
}

var protobufEncoding = encoding{
	split: framer.NewLengthDelimitedFrameReader,
	join: func(raw []byte) []byte {
		var framed bytes.Buffer
		// Writing to a buffer cannot fail.
		_, _ = framer.NewLengthDelimitedFrameWriter(&framed).Write(raw)
		return framed.Bytes()
	},
	decode: func(raw []byte) (string, []byte, error) {
		var event metav1.WatchEvent
		err := event.Unmarshal(raw)
		return event.Type, event.Object.Raw, err
	},
	status: func(status metav1.Status) ([]byte, error) {
		encoded, err := status.Marshal()
		if err != nil {
			return nil, err
		}
		envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: encoded}
		if encoded, err = envelope.Marshal(); err != nil {
			return nil, err
		}
		event := metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: append(bytes.Clone(protobufPrefix), encoded...)}}
		return event.Marshal()
	},
}

// splitter reads a watch stream frame by frame.
type splitter struct {
	encoding *encoding
	frames   io.ReadCloser
	// initial is set for a streaming list (a watch that begins with a list) until the initial list
	// has ended.
	initial bool
}

func newSplitter(stream io.ReadCloser, encoding *encoding, initial bool) *splitter {
	s := &splitter{encoding: encoding, frames: stream, initial: initial}
	if encoding != nil {
		s.frames = encoding.split(stream)
	}
	return s
}

// next returns the next frame. A frame that cannot be decoded has an event without a type. Such a
// frame is forwarded like any other frame, so that the client reports the error.
func (s *splitter) next() (frame, error) {
	if s.encoding == nil {
		buffer := make([]byte, 4096)
		n, err := s.frames.Read(buffer)
		if n > 0 {
			err = nil
		}
		return frame{bytes: buffer[:n]}, err
	}
	raw, err := readFrame(s.frames)
	if err != nil {
		return frame{}, err
	}
	f := frame{event: fault.Event{Initial: s.initial}}
	if kind, object, err := s.encoding.decode(raw); err == nil {
		meta := metadata(object)
		f.event.Type, f.event.Namespace, f.event.Name, f.event.ResourceVersion = kind, meta.Namespace, meta.Name, meta.ResourceVersion
		f.object = object
		if kind == "BOOKMARK" && meta.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			f.initialEnd, s.initial = true, false
		}
	}
	f.bytes = s.encoding.join(raw)
	return f, nil
}

// readFrame reads a frame, regardless of its size.
func readFrame(frames io.Reader) ([]byte, error) {
	buffer := make([]byte, 4096)
	read := 0
	for {
		n, err := frames.Read(buffer[read:])
		read += n
		if !errors.Is(err, io.ErrShortBuffer) {
			return buffer[:read], err
		}
		buffer = slices.Concat(buffer, make([]byte, len(buffer)))
	}
}
