// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Path is the path of a value in an object. Its elements are strings for fields and map keys, and
// ints for list indexes. Its string form is like spec.pools[0].labels["example.com/a"].
type Path []any

// simple matches names that need no quotes in a path's string form.
var simple = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			switch {
			case !simple.MatchString(step):
				fmt.Fprintf(&b, "[%s]", strconv.Quote(step))
			case b.Len() > 0:
				b.WriteString("." + step)
			default:
				b.WriteString(step)
			}
		}
	}
	return b.String()
}

// ParsePath parses a path in the format of Path.String.
func ParsePath(text string) (Path, error) {
	var p Path
	rest := text
	for rest != "" {
		var step any
		var err error
		if strings.HasPrefix(rest, "[") {
			step, rest, err = parseBracket(rest[1:])
		} else {
			if len(p) > 0 {
				var dot bool
				if rest, dot = strings.CutPrefix(rest, "."); !dot {
					return nil, fmt.Errorf("path %q: want . or [ before %q", text, rest)
				}
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			name := rest[:end]
			rest = rest[end:]
			if !simple.MatchString(name) {
				err = fmt.Errorf("%q is not the name of a field; other keys are written like [\"example.com/a\"]", name)
			}
			step = name
		}
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", text, err)
		}
		p = append(p, step)
	}
	return p, nil
}

// parseBracket parses an index or a quoted key up to the closing bracket, and returns the remaining
// string.
func parseBracket(text string) (step any, rest string, err error) {
	if quoted, err := strconv.QuotedPrefix(text); err == nil && quoted[0] == '"' {
		key, err := strconv.Unquote(quoted)
		rest, closed := strings.CutPrefix(text[len(quoted):], "]")
		if err != nil || !closed {
			return nil, "", fmt.Errorf("want ] after %s", quoted)
		}
		return key, rest, nil
	}
	index, rest, closed := strings.Cut(text, "]")
	i, err := strconv.Atoi(index)
	if err != nil || !closed || i < 0 {
		return nil, "", fmt.Errorf("want an index or a quoted key in [%s]", index)
	}
	return i, rest, nil
}

// MarshalText implements [encoding.TextMarshaler].
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Path) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePath(string(text))
	return err
}

// Then returns the path extended by an element.
func (p Path) Then(step any) Path { return append(slices.Clone(p), step) }

// Get returns the value at the path, or false if it does not exist.
func (p Path) Get(in any) (any, bool) {
	for _, step := range p {
		switch at := in.(type) {
		case map[string]any:
			key, is := step.(string)
			next, has := at[key]
			if !is || !has {
				return nil, false
			}
			in = next
		case []any:
			i, is := step.(int)
			if !is || i >= len(at) {
				return nil, false
			}
			in = at[i]
		default:
			return nil, false
		}
	}
	return in, true
}

// gone is a special value with which Set removes a field or a list item.
type gone struct{}

// Set returns a copy of an object with the given value at the path, or false if that is impossible.
// It creates missing objects along the path, but not missing lists.
func (p Path) Set(in, value any) (any, bool) {
	if len(p) == 0 {
		return value, true
	}
	switch step := p[0].(type) {
	case string:
		at, is := in.(map[string]any)
		if !is && in != nil {
			return nil, false
		}
		next, ok := p[1:].Set(at[step], value)
		if !ok {
			return nil, false
		}
		at = maps.Clone(at)
		if _, remove := next.(gone); remove {
			delete(at, step)
			return at, true
		}
		if at == nil {
			at = map[string]any{}
		}
		at[step] = next
		return at, true
	case int:
		at, is := in.([]any)
		if !is || step >= len(at) {
			return nil, false
		}
		next, ok := p[1:].Set(at[step], value)
		if !ok {
			return nil, false
		}
		at = slices.Clone(at)
		if _, remove := next.(gone); remove {
			return slices.Delete(at, step, step+1), true
		}
		at[step] = next
		return at, true
	}
	return nil, false
}

// Remove returns a copy of an object without the value at the path, or false if there is no such
// value.
func (p Path) Remove(in any) (any, bool) {
	if _, there := p.Get(in); !there || len(p) == 0 {
		return nil, false
	}
	return p.Set(in, gone{})
}

// Within reports whether one of the two paths is a prefix of the other.
func (p Path) Within(other Path) bool {
	n := min(len(p), len(other))
	return slices.Equal(p[:n], other[:n])
}
