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

// State has all objects at one time, by key: RESOURCE NAMESPACE/NAME. Objects with generated names, such as
// the pods of a ReplicaSet, share a key.
type State map[string][]Fields

// Fields has the leaves of an object, by path.
type Fields map[string]string

var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)
	uids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addresses  = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	indexes    = regexp.MustCompile(`\[[^\]]*\]`)
)

// anonymousTime replaces times.
const anonymousTime = "TIME"

// IsTime reports whether a value was nothing but a time.
func IsTime(value string) bool { return value == anonymousTime }

// Anonymous replaces the parts of a text that differ between two equal runs, such as UIDs and
// times.
func Anonymous(text string) string {
	text = timestamps.ReplaceAllString(text, anonymousTime)
	return addresses.ReplaceAllString(WithoutUIDs(text), "ADDRESS")
}

// WithoutUIDs replaces UIDs.
func WithoutUIDs(text string) string { return uids.ReplaceAllString(text, "UID") }

// AnyIndex removes the names of list items from a path.
func AnyIndex(path string) string { return indexes.ReplaceAllString(path, "[]") }

// ResourceOf returns the resource of a key.
func ResourceOf(key string) string {
	resource, _, _ := strings.Cut(key, " ")
	return resource
}

// Flatten returns the leaves of an object, except for skipped paths. The paths passed to skip have no names
// of list items.
func Flatten(object map[string]any, skip func(path string) bool) Fields {
	f := Fields{}
	f.add("", object, skip)
	return f
}

// add adds the leaves of a value. List items with a usual key field are identified by it, so that their order
// does not matter.
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
		// Outside of a spec, an empty and a missing map are equivalent: many operators replace one by the
		// other.
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

// ItemKey returns the key field of a list item, "" if there is none.
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
