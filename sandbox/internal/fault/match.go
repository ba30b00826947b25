// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request holds the parts of a request that rules match.
type Request struct {
	// Verb is Kubernetes' own, or VerbWatchList.
	Verb string
	// Resource is empty in a request that is not for a resource.
	schema.GroupResource
	Subresource, Namespace, Name string
	UserAgent, Path              string
	// ResourceVersion is the parameter of a list or a watch; no rule matches it.
	ResourceVersion string
	// Cached: it is a list that an API server may answer from its cache, if that is not older
	// than ResourceVersion.
	Cached bool
	// Change is the change of a write; nil if no rule needs it, or it could not be decoded.
	Change *Change
}

// VerbWatchList is the verb of a watch that begins with a list, as client-go
// asks for it (sendInitialEvents=true).
const VerbWatchList = "watchlist"

// IsWatch reports whether the request is a watch, of either kind.
func (r Request) IsWatch() bool { return r.Verb == "watch" || r.Verb == VerbWatchList }

// Event holds the parts of an event of a watch that rules match.
type Event struct {
	// Type is empty for the end of the stream, and for bytes that could not be
	// decoded.
	Type            string
	Namespace, Name string
	// Initial: it belongs to the list at the beginning of a streaming list.
	Initial bool
	// ResourceVersion is that of its object.
	ResourceVersion string
	// Change is nil if no rule asks for it, or it could not be decoded.
	Change *Change
}

// Change is an object, nil if it is deleted, and its former version, nil if it is new or the
// version is not known.
type Change struct{ Object, Old map[string]any }

// aliases are verbs that stand for several.
var aliases = map[string][]string{
	"read":  {"get", "list", "watch", VerbWatchList},
	"watch": {"watch", VerbWatchList},
	"write": {"create", "update", "patch", "delete", "deletecollection"},
}

// Matches reports whether the request fits.
func (m Match) Matches(r Request) bool {
	if (len(m.Paths) > 0) != (r.Resource == "") {
		return false
	}
	return fits(m.Verbs, func(pattern string) bool { return verbFits(pattern, r.Verb) }) &&
		fits(m.Resources, func(pattern string) bool { return resourceFits(pattern, r) }) &&
		fits(m.Namespaces, is(r.Namespace)) && fits(m.Names, is(r.Name)) &&
		fits(m.UserAgents, is(r.UserAgent)) && fits(m.Paths, is(r.Path))
}

// Matches reports whether the event fits.
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

// all reports whether events are not narrowed by type, namespace or name.
func (e Events) all() bool { return len(e.Types)+len(e.Namespaces)+len(e.Names) == 0 }

// fits reports whether a value, which the function compares, fits a list of patterns: none of the
// patterns with "!", and any of the others.
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

// globFits is not path.Match: "*" matches slashes, too, which user agents and paths
// are full of, and no other character is special.
func globFits(pattern, value string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == value
	}
	expression := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
	matched, err := regexp.MatchString(expression, value)
	return matched && err == nil
}

// UnknownResources returns the entries of Resources that fit no known resource, which may have a
// subresource. If none is known, all entries are returned. A resource that an entry with "!"
// excludes need not exist.
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
