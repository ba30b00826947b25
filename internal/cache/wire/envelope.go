// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An API server sends an object as the prefix k8s\0 followed by an Unknown message, which contains
// the object's kind and the encoded object. The response to a list request is a list object in this
// form. A watch event is a WatchEvent message that contains an object in this form; the message is
// preceded by its length in four bytes.

// Prefix is the magic number at the start of every object in Kubernetes' protobuf encoding.
var Prefix = []byte("k8s\x00")

// MaxObject is the maximum size of an object or an event in bytes. client-go has the same limit.
const MaxObject = 16 << 20

var (
	// ErrNotUnderstood is the error for data that is not protobuf of the expected form. client-go
	// may still be able to decode the response.
	ErrNotUnderstood = errors.New("not the expected protobuf")
	// ErrTooLarge is the error for a watch event of more than MaxObject bytes.
	ErrTooLarge = fmt.Errorf("an event of more than %d bytes", MaxObject)
)

// NotUnderstood wraps err in [ErrNotUnderstood].
func NotUnderstood(err error) error { return fmt.Errorf("%w: %w", ErrNotUnderstood, err) }

// Kind is an object's API version and kind, as parsed from its Unknown message. Its slices refer to
// the input.
type Kind struct{ apiVersion, name []byte }

// String returns the API version and the kind, separated by a space.
func (k Kind) String() string { return fmt.Sprintf("%s %s", k.apiVersion, k.name) }

// Is reports whether k is the given kind in API version v1.
func (k Kind) Is(kind string) bool {
	return string(k.apiVersion) == "v1" && string(k.name) == kind
}

// typeMeta sets k from an encoded TypeMeta message.
func (k *Kind) typeMeta(b []byte) error {
	return EachField(b, func(f Field, value []byte) error {
		switch f.Number {
		case 1:
			k.apiVersion = value
		case 2:
			k.name = value
		}
		return nil
	})
}

// Event is a parsed WatchEvent message with its object. Its slices refer to the input.
type Event struct {
	What, Object []byte
	Kind         Kind
}

// ParseEvent parses the event in a watch frame. It returns ErrNotUnderstood if the frame contains
// other data.
func ParseEvent(frame []byte) (Event, error) {
	var e Event
	var unknown []byte
	err := EachField(frame, func(f Field, value []byte) error {
		switch f.Number {
		case 1:
			e.What = value
		case 2:
			return EachField(value, func(f Field, value []byte) error {
				if f.Number == 1 {
					unknown = value
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	message, ok := bytes.CutPrefix(unknown, Prefix)
	if !ok {
		return e, NotUnderstood(errors.New("an event without an object in protobuf"))
	}
	return e, EachField(message, func(f Field, value []byte) error {
		switch {
		case f.Number == 1:
			return e.Kind.typeMeta(value)
		case f.Number == 2:
			e.Object = value
		case len(value) > 0 && (f.Number == 3 || f.Number == 4):
			return NotUnderstood(errors.New("an object with an unexpected content type or encoding"))
		}
		return nil
	})
}

// EachField calls fn for each field of an encoded message, with the field's value. It returns
// ErrNotUnderstood for invalid protobuf, or the first error of fn.
func EachField(b []byte, fn func(f Field, value []byte) error) error {
	for len(b) > 0 {
		f, err := nextField(b)
		if err != nil {
			return NotUnderstood(err)
		}
		if err := fn(f, b[f.body:f.size]); err != nil {
			return err
		}
		b = b[f.size:]
	}
	return nil
}

// Buffer is memory that is reused to read successive objects.
type Buffer struct{ bytes []byte }

// keptBuffer is the maximum number of bytes that a Buffer keeps allocated for reuse.
const keptBuffer = 64 << 10

// read returns the next n bytes, which are valid until the next call of read. It returns
// [io.ErrUnexpectedEOF] if the input ends earlier.
func (b *Buffer) read(from io.Reader, n int) ([]byte, error) {
	b.bytes = b.bytes[:0]
	if n > keptBuffer {
		// The sender's length is not trusted: memory grows only with the bytes that have actually
		// arrived.
		var large bytes.Buffer
		if _, err := io.CopyN(&large, from, int64(n)); err != nil {
			return nil, unexpected(err)
		}
		return large.Bytes(), nil
	}
	if n > cap(b.bytes) {
		b.bytes = make([]byte, 0, min(keptBuffer, 2*n))
	}
	b.bytes = b.bytes[:n]
	_, err := io.ReadFull(from, b.bytes)
	return b.bytes, unexpected(err)
}

// unexpected turns io.EOF into io.ErrUnexpectedEOF, for input that ends inside a value.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadFrame returns the next frame of a watch, which is valid until the next call with the same
// Buffer. It returns [io.EOF] at the end of the watch, [io.ErrUnexpectedEOF] if the watch ends
// inside a frame, and ErrTooLarge for a frame of more than MaxObject bytes.
func ReadFrame(from io.Reader, b *Buffer) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > MaxObject {
		return nil, ErrTooLarge
	}
	return b.read(from, int(n))
}

// page reads the list in a response body, object by object.
type page struct {
	body *bufio.Reader
	// left is the number of unread bytes of the message that is being read.
	left uint64
	Buffer
}

// ReadPage reads a list of the given kind from a response body. It calls `begin` with the list's
// metadata, which an API server sends first, and `item` with the bytes of each object, which are
// valid until the next call of `item`. It returns ErrNotUnderstood if the body is not a list of
// this kind, and otherwise the first error of the body, `begin` or `item`.
func ReadPage(body io.Reader, kind string, begin func(*metav1.ListMeta), item func([]byte) error) error {
	p := &page{body: bufio.NewReaderSize(body, 32<<10)}
	start, err := p.body.Peek(len(Prefix))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case !bytes.Equal(start, Prefix):
		return NotUnderstood(fmt.Errorf("an answer that begins with %q", start))
	}
	_, _ = p.body.Discard(len(Prefix))
	var of Kind
	listed := false
	p.left = 1 << 62 // The outermost message ends with the body.
	for {
		if _, err := p.body.Peek(1); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		number, size, err := p.header()
		if err != nil {
			return err
		}
		if number == 2 {
			if !of.Is(kind) {
				return NotUnderstood(fmt.Errorf("a list of the kind %s", of))
			}
			rest := p.left - size
			p.left, listed = size, true
			if err := p.items(begin, item); err != nil {
				return err
			}
			p.left = rest
			continue
		}
		value, err := p.value(size)
		switch {
		case err != nil:
			return err
		case number == 1:
			// The value is cloned because it refers to the reused buffer.
			if err := of.typeMeta(bytes.Clone(value)); err != nil {
				return err
			}
		case size > 0 && (number == 3 || number == 4):
			return NotUnderstood(errors.New("a list with an unexpected content type or encoding"))
		}
	}
	if !listed {
		return NotUnderstood(errors.New("an answer without a list"))
	}
	return nil
}

// items reads the metadata and the objects of the list message.
func (p *page) items(begin func(*metav1.ListMeta), item func([]byte) error) error {
	for p.left > 0 {
		number, size, err := p.header()
		if err != nil {
			return err
		}
		value, err := p.value(size)
		if err != nil {
			return err
		}
		switch number {
		case 1:
			about := &metav1.ListMeta{}
			if err := about.Unmarshal(value); err != nil {
				return NotUnderstood(err)
			}
			begin(about)
		case 2:
			if err := item(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// header reads the tag and the length of the next field. Unknown and list messages have only fields
// of wire type Bytes.
func (p *page) header() (protowire.Number, uint64, error) {
	tag, err := p.varint()
	if err != nil {
		return 0, 0, err
	}
	number, kind := protowire.DecodeTag(tag)
	if number < protowire.MinValidNumber || kind != protowire.BytesType {
		return 0, 0, NotUnderstood(fmt.Errorf("a list with the tag %d", tag))
	}
	size, err := p.varint()
	if err == nil && size > p.left {
		err = NotUnderstood(errors.New("a field that is longer than its message"))
	}
	return number, size, err
}

// varint reads the next varint from the body.
func (p *page) varint() (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		if p.left == 0 {
			break
		}
		b, err := p.body.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		p.left--
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, NotUnderstood(errors.New("a varint of more than 64 bits"))
}

func (p *page) value(size uint64) ([]byte, error) {
	if size > MaxObject {
		return nil, NotUnderstood(fmt.Errorf("an object of %d bytes", size))
	}
	p.left -= size
	return p.read(p.body, int(size))
}
