// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Mask is the set of fields to keep in a protobuf message. fields is indexed by field number, with
// nil for each dropped field.
type Mask struct{ fields []*maskField }

// maskField describes which parts of a kept field are kept.
type maskField struct {
	// sub is the mask of the message that the field contains. If it is nil, the entire message is
	// kept.
	sub *Mask
	// keys lists the kept keys of a map field. If it is nil, all keys are kept.
	keys []string
}

// NewMask returns a mask that keeps the given fields of a Go type with protobuf tags. Each path
// lists field names, as in spec.containers.name. The last field of a path is kept completely; for a
// map, a key in brackets limits it to one entry, as in metadata.labels[app].
func NewMask(of reflect.Type, paths []string) (*Mask, error) {
	root := &Mask{}
	for _, path := range paths {
		if err := root.add(of, path); err != nil {
			return nil, fmt.Errorf("the field %s of %s: %w", path, of, err)
		}
	}
	return root, nil
}

func (m *Mask) add(of reflect.Type, path string) error {
	end := strings.IndexAny(path, ".[")
	name, rest := path, ""
	if end >= 0 {
		name, rest = path[:end], path[end:]
	}
	number, field, err := FieldNamed(name, of)
	if err != nil {
		return err
	}
	if number >= len(m.fields) {
		m.fields = append(m.fields, make([]*maskField, number+1-len(m.fields))...)
	}
	kept := m.fields[number]
	known := kept != nil
	if !known {
		kept = &maskField{}
		m.fields[number] = kept
	}
	key, isKey := strings.CutPrefix(rest, "[")
	switch {
	case isKey && field.Kind() == reflect.Map && strings.HasSuffix(key, "]"):
		if known && kept.keys == nil {
			return nil // A path without a key keeps the entire map.
		}
		kept.keys = append(kept.keys, strings.TrimSuffix(key, "]"))
	case isKey:
		return fmt.Errorf("%s is not a map with a key in brackets", name)
	case rest == "":
		*kept = maskField{}
	case known && kept.sub == nil:
	default:
		if kept.sub == nil {
			kept.sub = &Mask{}
		}
		return kept.sub.add(field, rest[1:])
	}
	return nil
}

// FieldNamed returns the protobuf field number and the Go type of the named field. For a list, the
// type is that of the items.
func FieldNamed(name string, of reflect.Type) (int, reflect.Type, error) {
	if of.Kind() != reflect.Struct {
		return 0, nil, fmt.Errorf("%s has no fields", of)
	}
	for i := range of.NumField() {
		tag := strings.Split(of.Field(i).Tag.Get("protobuf"), ",")
		if !slices.Contains(tag, "name="+name) {
			continue
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil {
			return 0, nil, fmt.Errorf("the number of %s: %w", name, err)
		}
		field := of.Field(i).Type
		for field.Kind() == reflect.Pointer || field.Kind() == reflect.Slice {
			field = field.Elem()
		}
		return number, field, nil
	}
	return 0, nil, fmt.Errorf("%s has no field %s", of, name)
}

// Prune removes the fields that m does not keep from `message`, and returns the result. It works in
// place: after an error, `message` must not be used. Prune does not check field values; the decoder
// does that.
func (m *Mask) Prune(message []byte) ([]byte, error) {
	n, err := m.move(message, 0, 0, len(message))
	return message[:n], err
}

// move moves the kept fields of the message in b[in:end] to b[out:], where out is at most in, and
// returns the end of the moved fields. Moving never makes a field longer, so that no unread bytes
// are overwritten.
func (m *Mask) move(b []byte, out, in, end int) (int, error) {
	for in < end {
		f, err := nextField(b[in:end])
		if err != nil {
			return out, err
		}
		start, body := in, in+f.body
		in += f.size
		kept := m.field(f.Number)
		switch {
		case kept == nil:
		case f.Kind != protowire.BytesType, kept.sub == nil && (kept.keys == nil || kept.hasKeyOf(b[body:in])):
			out += copy(b[out:], b[start:in])
		case kept.sub == nil:
		default:
			// The new length is known only after the move, and its varint may be shorter than the
			// old one.
			to := out + f.body
			last, err := kept.sub.move(b, to, body, in)
			if err != nil {
				return out, err
			}
			header := protowire.AppendTag(b[out:out], f.Number, f.Kind)
			header = protowire.AppendVarint(header, uint64(last-to))
			out += len(header)
			out += copy(b[out:], b[to:last])
		}
	}
	return out, nil
}

func (m *Mask) field(number protowire.Number) *maskField {
	if int(number) >= len(m.fields) {
		return nil
	}
	return m.fields[number]
}

// hasKeyOf reports whether a map entry has a kept key. A damaged entry is kept, so that the decoder
// reports the error.
func (f *maskField) hasKeyOf(entry []byte) bool {
	var key []byte
	for len(entry) > 0 {
		field, err := nextField(entry)
		if err != nil {
			return true
		}
		if field.Number == 1 && field.Kind == protowire.BytesType {
			key = entry[field.body:field.size]
		}
		entry = entry[field.size:]
	}
	for _, kept := range f.keys {
		if kept == string(key) {
			return true
		}
	}
	return false
}

// Field describes an encoded field of a message: its number, wire type and total size in bytes. The
// field's value begins `body` bytes after the start of the field.
type Field struct {
	Number     protowire.Number
	Kind       protowire.Type
	body, size int
}

// nextField parses the field at the start of b. The value of a field of wire type Bytes does not
// include its length prefix.
func nextField(b []byte) (Field, error) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return Field{}, protowire.ParseError(n)
	}
	f := Field{Number: number, Kind: kind, body: n}
	if kind == protowire.BytesType {
		length, m := protowire.ConsumeVarint(b[n:])
		if m < 0 {
			return f, protowire.ParseError(m)
		}
		f.body = n + m
		if length > uint64(len(b)-f.body) {
			return f, io.ErrUnexpectedEOF
		}
		f.size = f.body + int(length)
		return f, nil
	}
	m := protowire.ConsumeFieldValue(number, kind, b[n:])
	if m < 0 {
		return f, protowire.ParseError(m)
	}
	f.size = n + m
	return f, nil
}
