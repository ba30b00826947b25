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

// frame is an event of a watch, as it goes over the wire.
type frame struct {
	bytes []byte
	event fault.Event
	// object is that of the event, encoded.
	object []byte
	// initialEnd: it is the bookmark that ends the list at the beginning.
	initialEnd bool
}

// encoding is how the events of a stream are written.
type encoding struct {
	// split cuts a stream into events without frames.
	split func(io.ReadCloser) io.ReadCloser
	// join puts a frame around an event.
	join func([]byte) []byte
	// decode reads an event and the object in it.
	decode func([]byte) (kind string, object []byte, err error)
	// status writes an ERROR event.
	status func(metav1.Status) ([]byte, error)
}

// encodingOf returns how a stream of that content type is written, nil if that
// is not known.
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
		// A buffer takes everything.
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

// splitter reads the frames of a stream.
type splitter struct {
	encoding *encoding
	frames   io.ReadCloser
	// initial: the list at the beginning has not ended yet.
	initial bool
}

func newSplitter(stream io.ReadCloser, encoding *encoding, initial bool) *splitter {
	s := &splitter{encoding: encoding, frames: stream, initial: initial}
	if encoding != nil {
		s.frames = encoding.split(stream)
	}
	return s
}

// next returns the next frame. A frame that cannot be decoded has no type, and is forwarded like
// any other: the error is for the client to report.
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

// readFrame reads a frame of any length.
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
