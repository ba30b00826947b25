// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request contains the properties of a request that rules can match.
type Request struct {
	// Verb is a Kubernetes verb, or VerbWatchList.
	Verb string
	// GroupResource is the group and resource of the request. It is empty for a non-resource
	// request.
	schema.GroupResource
	Subresource, Namespace, Name string
	UserAgent, Path              string
	// ResourceVersion is the resourceVersion parameter of a list or watch. Rules cannot select
	// requests by this parameter.
	ResourceVersion string
	// Cached is set for a list that an API server may answer from any cache that is not older than
	// ResourceVersion.
	Cached bool
	// Change is the change made by a write. It is nil if no rule has a condition for the request,
	// or if the object could not be decoded.
	Change *Change
}

// VerbWatchList is the verb of a watch that begins with a list (sendInitialEvents=true), as sent by
// client-go.
const VerbWatchList = "watchlist"

// IsWatch reports whether the request is a watch, with or without an initial list.
func (r Request) IsWatch() bool { return r.Verb == "watch" || r.Verb == VerbWatchList }

// Event contains the properties of a watch event that rules can match.
type Event struct {
	// Type is the event's type, such as ADDED. It is empty at the end of the stream, and for an
	// event that could not be decoded.
	Type            string
	Namespace, Name string
	// Initial is set for an event in the initial list of a streaming list (a watch that begins with
	// a list).
	Initial bool
	// ResourceVersion is the resourceVersion of the event's object.
	ResourceVersion string
	// Change is the event's object and its previous version. It is nil if no rule has a condition
	// for the watch, or if the object could not be decoded.
	Change *Change
}

// Change is an object before (Old) and after (Object) a write or an event. Object is nil for a
// delete request. Old is nil if the object is new or its previous version is unknown.
type Change struct{ Object, Old map[string]any }

// aliases maps a verb in a rule, such as "read", to the set of request verbs that it matches.
var aliases = map[string][]string{
	"read":  {"get", "list", "watch", VerbWatchList},
	"watch": {"watch", VerbWatchList},
	"write": {"create", "update", "patch", "delete", "deletecollection"},
}

// Matches reports whether the request matches every criterion of `m`.
func (m Match) Matches(r Request) bool {
	if (len(m.Paths) > 0) != (r.Resource == "") {
		return false
	}
	return fits(m.Verbs, func(pattern string) bool { return verbFits(pattern, r.Verb) }) &&
		fits(m.Resources, func(pattern string) bool { return resourceFits(pattern, r) }) &&
		fits(m.Namespaces, is(r.Namespace)) && fits(m.Names, is(r.Name)) &&
		fits(m.UserAgents, is(r.UserAgent)) && fits(m.Paths, is(r.Path))
}

// Matches reports whether the event matches every criterion of `e`.
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

// all reports whether `e` matches events of any type, namespace and name.
func (e Events) all() bool { return len(e.Types)+len(e.Namespaces)+len(e.Names) == 0 }

// fits reports whether a value matches a list of patterns. It must match none of the patterns that
// begin with "!" and, if there are other patterns, at least one of these. `one` reports whether the
// value matches a single pattern.
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

// globFits matches a pattern in which only "*" is special. Unlike in path.Match, "*" also matches
// slashes, which occur in user agents and paths.
func globFits(pattern, value string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == value
	}
	expression := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
	matched, err := regexp.MatchString(expression, value)
	return matched && err == nil
}

// UnknownResources returns the entries of Resources that match no known resource or subresource. It
// does not return entries that begin with "!", because an excluded resource need not exist.
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
