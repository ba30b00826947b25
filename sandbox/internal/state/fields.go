// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// State maps keys of the form RESOURCE NAMESPACE/NAME to the objects at a point in time. Objects
// with generated names, such as a ReplicaSet's pods, share a key.
type State map[string][]Fields

// Fields maps the paths of an object's leaf fields to their values.
type Fields map[string]string

var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)
	uids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addresses  = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	indexes    = regexp.MustCompile(`\[[^\]]*\]`)
)

// anonymousTime replaces times in strings, so that equal runs produce equal strings.
const anonymousTime = "TIME"

// IsTime reports whether a value consisted only of a time before [Anonymous] replaced it.
func IsTime(value string) bool { return value == anonymousTime }

// Anonymous replaces the parts of a string that differ between two equal runs, such as UIDs and
// times.
func Anonymous(text string) string {
	text = timestamps.ReplaceAllString(text, anonymousTime)
	return addresses.ReplaceAllString(WithoutUIDs(text), "ADDRESS")
}

// WithoutUIDs replaces the UIDs in a string.
func WithoutUIDs(text string) string { return uids.ReplaceAllString(text, "UID") }

// AnyIndex replaces the name or index of each list item in a path with [].
func AnyIndex(path string) string { return indexes.ReplaceAllString(path, "[]") }

// ResourceOf returns the resource in the key of an object.
func ResourceOf(key string) string {
	resource, _, _ := strings.Cut(key, " ")
	return resource
}

// Flatten returns the leaf fields of an object, except for the fields at or below a path for which
// `skip` returns true. In the paths passed to `skip`, the name of each list item is replaced with
// [].
func Flatten(object map[string]any, skip func(path string) bool) Fields {
	f := Fields{}
	f.add("", object, skip)
	return f
}

// add adds the leaf fields of a value. A list item with a common key field, such as name, is
// identified by that field instead of its position, so that the order of the list does not matter.
func (f Fields) add(path string, value any, skip func(string) bool) {
	if skip(AnyIndex(path)) {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		seen := map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			key := Anonymous(name)
			if seen[key]++; seen[key] > 1 {
				key += "#" + strconv.Itoa(seen[key])
			}
			f.add(strings.TrimPrefix(path+"."+key, "."), value[name], skip)
		}
		// In metadata and status, an empty map is equivalent to a missing map, because many
		// operators do not distinguish them.
		if len(value) == 0 && path != "" && !strings.HasPrefix(path, "status.") && !strings.HasPrefix(path, "metadata.") {
			f[path] = "{}"
		}
	case []any:
		seen := map[string]int{}
		for _, item := range value {
			key := ItemKey(item)
			seen[key]++
			if seen[key] > 1 || key == "" {
				key += "#" + strconv.Itoa(seen[key])
			}
			f.add(path+"["+key+"]", item, skip)
		}
	default:
		f[path] = Anonymous(fmt.Sprint(value))
	}
}

// ItemKey returns the value that identifies a list item, such as its name, or "" if there is none.
func ItemKey(item any) string {
	fields, is := item.(map[string]any)
	if !is {
		return ""
	}
	for _, key := range []string{"type", "name", "key", "ip", "containerPort", "kind"} {
		if value, has := fields[key]; has {
			if key == "kind" {
				return fmt.Sprint(value) + " " + fmt.Sprint(fields["name"])
			}
			return Anonymous(fmt.Sprint(value))
		}
	}
	return ""
}
