// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"math"
	"regexp"
	"strings"
)

// value is a candidate value of a property, with its class and description.
type value struct {
	class Class
	what  string
	value any
}

// kind is a known kind of property, such as a duration or a port, with values that cannot be
// derived from the schema alone.
type kind struct {
	is     func(s *Schema, name string) bool
	values []value
}

// named returns a predicate that matches unconstrained string properties whose name matches a
// pattern.
func named(pattern string) func(*Schema, string) bool {
	expression := regexp.MustCompile(pattern)
	return func(s *Schema, name string) bool {
		return s.Type == "string" && s.Pattern == "" && s.Format == "" && len(s.Enum) == 0 && expression.MatchString(name)
	}
}

// counted matches the names of numeric properties that determine how many objects are created.
// Large values of such properties would only overload the machine.
var counted = regexp.MustCompile(`(?i)(replicas|count|size|instances|nodes|members|workers|brokers|shards|parallelism|completions|copies)$`)

// kinds lists the known kinds of properties. If several kinds match a property, the first of them
// applies. The first value of each kind is plausible.
var kinds = []kind{
	{isQuantity, []value{
		{Plausible, "a quantity", "128Mi"}, {Plausible, "a larger quantity", "1Gi"}, {Limit, "a fraction", "1500m"}, {Empty, "zero", "0"},
		{Beyond, "a negative quantity", "-1"}, {Beyond, "a huge quantity", "9Ei"}, {Wrong, "a quantity with an unknown unit", "1Tibit"},
	}},
	{func(s *Schema, _ string) bool { return s.XIntOrString }, []value{
		{Plausible, "one", int64(1)}, {Plausible, "a percentage", "50%"}, {Limit, "all", "100%"}, {Empty, "zero", int64(0)}, {Empty, "none", "0%"},
		{Beyond, "negative", int64(-1)}, {Beyond, "more than all", "150%"}, {Wrong, "a text", "many"},
	}},
	{func(s *Schema, name string) bool {
		return s.Format == "duration" || named(`(?i)(timeout|interval|duration|period|ttl|delay|backoff|lifetime|maxage|deadline)$`)(s, name)
	}, []value{
		{Plausible, "a duration", "90s"}, {Plausible, "a longer duration", "1h30m"}, {Empty, "no time", "0s"}, {Beyond, "a negative duration", "-5s"},
		{Beyond, "a duration beyond 64 bits", "9999999999h"}, {Wrong, "a duration without a unit", "5"}, {Wrong, "a duration in days", "1d"},
	}},
	{named(`(?i)(schedule|cron)$`), []value{
		{Plausible, "a schedule", "0 3 * * *"}, {Plausible, "hourly", "@hourly"}, {Limit, "a day that never comes", "0 0 31 2 *"},
		{Beyond, "a minute beyond the hour", "60 * * * *"}, {Wrong, "a schedule with a field too many", "0 0 3 * * * *"},
		{Wrong, "no schedule", "nightly"}, {Hostile, "an unknown time zone", "TZ=Nowhere/None 0 3 * * *"},
	}},
	{named(`(?i)timezone$`), []value{{Plausible, "a time zone", "Europe/Paris"}, {Wrong, "an unknown time zone", "Nowhere/None"}, {Hostile, "a path", "../../etc/passwd"}}},
	{named(`(?i)^image$`), []value{
		{Plausible, "an image", "registry.example.com/app:2"}, {Plausible, "an image by its digest", "app@sha256:" + strings.Repeat("0", 64)},
		{Wrong, "an image in upper case", "App:2"}, {Wrong, "an image without a name", ":2"},
	}},
	{named(`(?i)imagepullpolicy$`), []value{
		{Plausible, "if there is none", "IfNotPresent"}, {Plausible, "always", "Always"}, {Plausible, "never", "Never"}, {Wrong, "no policy", "Sometimes"},
	}},
	{named(`(?i)(url|uri|endpoint)$`), []value{{Plausible, "a URL", "https://example.com/a"}, {Wrong, "no URL", "://"}, {Hostile, "the URL of a file", "file:///etc/passwd"}}},
	{func(s *Schema, name string) bool {
		return s.Type == "integer" && strings.HasSuffix(strings.ToLower(name), "port")
	}, []value{
		{Plausible, "a port", int64(8081)}, {Limit, "the least port", int64(1)}, {Limit, "the largest port", int64(65535)}, {Empty, "port 0", int64(0)},
		{Beyond, "a port too large", int64(65536)}, {Beyond, "negative", int64(-1)},
	}},
	{func(s *Schema, name string) bool { return s.Type == "integer" && counted.MatchString(name) }, []value{
		{Plausible, "two", int64(2)}, {Plausible, "three", int64(3)}, {Empty, "zero", int64(0)}, {Beyond, "negative", int64(-1)},
		{Beyond, "the most negative", int64(math.MinInt32)},
	}},
	{func(s *Schema, _ string) bool { return has(s, "matchLabels", "matchExpressions") }, []value{
		{Plausible, "a selector", map[string]any{"matchLabels": map[string]any{"fuzz": "a"}}}, {Empty, "a selector of everything", map[string]any{}},
		{Limit, "a selector of nothing", map[string]any{"matchExpressions": []any{map[string]any{"key": "fuzz", "operator": "Exists"}, map[string]any{"key": "fuzz", "operator": "DoesNotExist"}}}},
		{Wrong, "an unknown operator", map[string]any{"matchExpressions": []any{map[string]any{"key": "fuzz", "operator": "Like", "values": []any{"a"}}}}},
		{Wrong, "In without values", map[string]any{"matchExpressions": []any{map[string]any{"key": "fuzz", "operator": "In"}}}},
		{Hostile, "a key that is not one", map[string]any{"matchLabels": map[string]any{"a b/c/d": "!"}}},
	}},
	{func(s *Schema, _ string) bool { return has(s, "limits", "requests") }, []value{
		{Plausible, "requests and limits", map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}, "limits": map[string]any{"memory": "128Mi"}}},
		{Beyond, "requests above the limits", map[string]any{"requests": map[string]any{"memory": "2Gi"}, "limits": map[string]any{"memory": "1Gi"}}},
		{Beyond, "more than any node has", map[string]any{"requests": map[string]any{"cpu": "100000"}}},
		{Wrong, "an unknown resource", map[string]any{"limits": map[string]any{"no such resource": "1"}}},
		{Empty, "neither", map[string]any{}},
	}},
	{func(s *Schema, _ string) bool { return has(s, "containers", "nodeSelector") }, []value{
		{Plausible, "a pod", map[string]any{"containers": []any{container}}},
		{Plausible, "a pod that fits no node", map[string]any{"containers": []any{container}, "nodeSelector": map[string]any{"fuzz": "none"}}},
		{Empty, "a pod without containers", map[string]any{"containers": []any{}}},
		{Wrong, "two containers of one name", map[string]any{"containers": []any{container, container}}},
		{Wrong, "a mount of no volume", map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app:2", "volumeMounts": []any{map[string]any{"name": "none", "mountPath": "/a"}}}}}},
		{Hostile, "a pod that is never restarted", map[string]any{"containers": []any{container}, "restartPolicy": "Never"}},
	}},
}

var container = map[string]any{"name": "app", "image": "registry.example.com/app:2"}

// has reports whether a schema describes an object with all of the given properties.
func has(s *Schema, names ...string) bool {
	for _, name := range names {
		if _, is := s.Properties[name]; !is {
			return false
		}
	}
	return true
}

// isQuantity reports whether a schema was generated for a resource.Quantity.
func isQuantity(s *Schema, _ string) bool {
	return s.XIntOrString && strings.Contains(s.Pattern, "KMGTPE")
}

// knownValues returns the values of the first kind that matches a property's name and schema.
func knownValues(s *Schema, name string) []value {
	for _, k := range kinds {
		if k.is(s, name) {
			return k.values
		}
	}
	return nil
}
