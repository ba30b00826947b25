// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request has the parts of a request that rules match.
type Request struct {
	// Verb is a verb of Kubernetes, or VerbWatchList.
	Verb string
	// GroupResource is empty for a request that is not for a resource.
	schema.GroupResource
	Subresource, Namespace, Name string
	UserAgent, Path              string
	// ResourceVersion is the parameter of a list or watch. No rule matches it.
	ResourceVersion string
	// Cached is set for a list that an API server may answer from its cache, if the cache is not older than
	// ResourceVersion.
	Cached bool
	// Change is the change that a write makes; nil if no rule needs it, or if it could not be decoded.
	Change *Change
}

// VerbWatchList is the verb of a watch that begins with a list (sendInitialEvents=true), as client-go
// requests it.
const VerbWatchList = "watchlist"

// IsWatch reports whether the request is a watch, of either kind.
func (r Request) IsWatch() bool { return r.Verb == "watch" || r.Verb == VerbWatchList }

// Event has the parts of a watch event that rules match.
type Event struct {
	// Type is empty for the end of the stream, and for an event that could not be decoded.
	Type            string
	Namespace, Name string
	// Initial is set for events of the initial list of a streaming list.
	Initial bool
	// ResourceVersion is the resourceVersion of the event's object.
	ResourceVersion string
	// Change is nil if no rule needs it, or if it could not be decoded.
	Change *Change
}

// Change is an object, nil if it is deleted, with its previous version, nil if the object is new or the
// version is unknown.
type Change struct{ Object, Old map[string]any }

// aliases are names for sets of verbs.
var aliases = map[string][]string{
	"read":  {"get", "list", "watch", VerbWatchList},
	"watch": {"watch", VerbWatchList},
	"write": {"create", "update", "patch", "delete", "deletecollection"},
}

// Matches reports whether the request matches.
func (m Match) Matches(r Request) bool {
	if (len(m.Paths) > 0) != (r.Resource == "") {
		return false
	}
	return fits(m.Verbs, func(pattern string) bool { return verbFits(pattern, r.Verb) }) &&
		fits(m.Resources, func(pattern string) bool { return resourceFits(pattern, r) }) &&
		fits(m.Namespaces, is(r.Namespace)) && fits(m.Names, is(r.Name)) &&
		fits(m.UserAgents, is(r.UserAgent)) && fits(m.Paths, is(r.Path))
}

// Matches reports whether the event matches.
func (e Events) Matches(event Event) bool {
	if event.Initial && !e.Initial {
		return false
	}
	types := e.Types
	if len(types) == 0 {
		types = []string{"ADDED", "MODIFIED", "DELETED"}
	}
	return fits(types, is(event.Type)) && fits(e.Namespaces, is(event.Namespace)) && fits(e.Names, is(event.Name))
}

// all reports whether events are not restricted by type, namespace or name.
func (e Events) all() bool { return len(e.Types)+len(e.Namespaces)+len(e.Names) == 0 }

// fits reports whether a value matches a list of patterns: none of the patterns with "!", and at least one of
// the others, if there are any. The function one matches the value with a pattern.
func fits(patterns []string, one func(string) bool) bool {
	wanted, found := false, false
	for _, pattern := range patterns {
		if unwanted, not := strings.CutPrefix(pattern, "!"); not {
			if one(unwanted) {
				return false
			}
			continue
		}
		wanted = true
		found = found || one(pattern)
	}
	return found || !wanted
}

func is(value string) func(string) bool {
	return func(pattern string) bool { return globFits(pattern, value) }
}

// globFits matches a pattern in which only "*" is special. Unlike in path.Match, "*" also matches slashes,
// which user agents and paths contain.
func globFits(pattern, value string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == value
	}
	expression := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
	matched, err := regexp.MatchString(expression, value)
	return matched && err == nil
}

// UnknownResources returns the entries of Resources that match no known resource; a known resource may have a
// subresource. If no resource is known, it returns all entries. A resource excluded with "!" need not exist.
func (m Match) UnknownResources(known []Request) []string {
	var unknown []string
	for _, pattern := range m.Resources {
		fits := func(r Request) bool { return resourceFits(pattern, r) }
		if !strings.HasPrefix(pattern, "!") && !slices.ContainsFunc(known, fits) {
			unknown = append(unknown, pattern)
		}
	}
	return unknown
}

func verbFits(pattern, verb string) bool {
	return pattern == verb || slices.Contains(aliases[pattern], verb)
}

func resourceFits(pattern string, r Request) bool {
	resource, subresource, _ := strings.Cut(pattern, "/")
	name, group, grouped := strings.Cut(resource, ".")
	return globFits(name, r.Resource) && globFits(subresource, r.Subresource) && (!grouped || globFits(group, r.Group))
}
