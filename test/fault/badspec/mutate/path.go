// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// path is the location of a value in JSON: names of properties, indexes of lists, and
// entries of maps.
type path []any

// entry is the key of a map, which is not a field of the schema.
type entry struct{ key string }

// then returns the path with one more step.
func (p path) then(step any) path { return append(slices.Clone(p), step) }

func (p path) String() string {
	var b strings.Builder
	b.WriteString("spec")
	for _, step := range p {
		switch step := step.(type) {
		case int:
			b.WriteString("[]")
		case entry:
			b.WriteString("{}")
		default:
			fmt.Fprintf(&b, ".%v", step)
		}
	}
	return b.String()
}

// get returns the value at the path, and false if there is none.
func (p path) get(in any) (any, bool) {
	if len(p) == 0 {
		return in, true
	}
	switch at := in.(type) {
	case map[string]any:
		next, ok := at[keyOf(p[0])]
		if !ok {
			return nil, false
		}
		return p[1:].get(next)
	case []any:
		if i, ok := p[0].(int); ok && i < len(at) {
			return p[1:].get(at[i])
		}
	}
	return nil, false
}

// absent, as a value, removes the field that is set to it.
var absent any = struct{ absent bool }{true}

// set returns a copy of in with another value at the path. Every step of the path
// except the last must exist.
func (p path) set(in, value any) any {
	if len(p) == 0 {
		return value
	}
	switch at := in.(type) {
	case map[string]any:
		key := keyOf(p[0])
		next := p[1:].set(at[key], value)
		if next == absent {
			at = maps.Clone(at)
			delete(at, key)
			return at
		}
		return with(at, key, next)
	case []any:
		i := p[0].(int)
		at = slices.Clone(at)
		if at[i] = p[1:].set(at[i], value); at[i] == absent {
			return slices.Delete(at, i, i+1)
		}
		return at
	}
	panic(fmt.Sprintf("%s leads nowhere", p))
}

func keyOf(step any) string {
	if e, ok := step.(entry); ok {
		return e.key
	}
	return step.(string)
}

// with returns a copy of an object with a property added or replaced.
func with(object map[string]any, key string, value any) map[string]any {
	object = maps.Clone(object)
	object[key] = value
	return object
}

// copied returns a value after a round trip through JSON.
func copied(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic("an example is JSON: " + err.Error())
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		panic("what was JSON is JSON: " + err.Error())
	}
	return out
}

// twice is an object that has one of its properties twice.
type twice struct {
	object map[string]any
	key    string
}

// MarshalJSON implements [json.Marshaler].
func (t twice) MarshalJSON() ([]byte, error) {
	first, err := json.Marshal(map[string]any{t.key: t.object[t.key]})
	if err != nil {
		return nil, err
	}
	all, err := json.Marshal(t.object)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{first[:len(first)-1], all[1:]}, []byte(",")), nil
}
