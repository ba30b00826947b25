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

// State are all objects at a moment, by key: RESOURCE NAMESPACE/NAME. Objects with generated names,
// such as pods of a ReplicaSet, share an entry.
type State map[string][]Fields

// Fields are the leaves of an object, by path.
type Fields map[string]string

var (
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)
	uids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addresses  = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	indexes    = regexp.MustCompile(`\[[^\]]*\]`)
)

// anonymousTime stands for a time.
const anonymousTime = "TIME"

// IsTime reports whether a value is a time and nothing else.
func IsTime(value string) bool { return value == anonymousTime }

// Anonymous replaces the parts of a text that differ between two equal runs, such as UIDs and
// times.
func Anonymous(text string) string {
	text = timestamps.ReplaceAllString(text, anonymousTime)
	return addresses.ReplaceAllString(WithoutUIDs(text), "ADDRESS")
}

// WithoutUIDs replaces UIDs.
func WithoutUIDs(text string) string { return uids.ReplaceAllString(text, "UID") }

// AnyIndex replaces the names of items in a path by nothing.
func AnyIndex(path string) string { return indexes.ReplaceAllString(path, "[]") }

// ResourceOf returns the resource of a key.
func ResourceOf(key string) string {
	resource, _, _ := strings.Cut(key, " ")
	return resource
}

// Flatten returns the leaves of an object without skipped paths. The names of items are left out of
// the paths that skip gets.
func Flatten(object map[string]any, skip func(path string) bool) Fields {
	f := Fields{}
	f.add("", object, skip)
	return f
}

// add adds the leaves of a value. Items of lists are named by their key, so that their order does
// not matter, if they have a usual key.
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
		// Many operators write an empty map in place of a missing map, or the other way round,
		// which only matters in a spec.
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

// ItemKey returns the field that names an item of a list, "" if it has no name.
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
