// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
)

// MistakesError lists all mistakes in a scenario, one line each.
type MistakesError []error

// Error formats a single mistake unchanged. Several mistakes are preceded by their number, and
// listed one per line.
func (m MistakesError) Error() string {
	if len(m) == 1 {
		return m[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d mistakes:", len(m))
	for _, mistake := range m {
		b.WriteString("\n  " + mistake.Error())
	}
	return b.String()
}

func (m *MistakesError) add(format string, args ...any) {
	*m = append(*m, fmt.Errorf(format, args...))
}

func (m *MistakesError) noneEmpty(field string, patterns []string) {
	if slices.Contains(patterns, "") {
		m.add(`%s: "" matches nothing: leave it out, or write "*" for any`, field)
	}
}

// validate returns all mistakes in a rule.
func (r Rule) validate() MistakesError {
	var found MistakesError
	if problems := validation.IsDNS1123Subdomain(r.Name); len(problems) > 0 {
		found.add("that cannot be a name: %s", problems[0])
	}
	traits, known := kinds[r.Fault.Kind]
	if !known {
		found.add("fault.kind %q: want one of %s", r.Fault.Kind, join(Kinds()))
		return found
	}
	return slices.Concat(found,
		r.Match.validate(r.Fault.Kind, traits),
		r.Events.validate(r.Fault.Kind, traits),
		r.Count.validate(r.Fault.Kind),
		r.validateWhen(traits),
		r.Fault.validate(traits),
	)
}

func (r Rule) validateWhen(traits traits) MistakesError {
	var found MistakesError
	if r.When == "" {
		return nil
	}
	possible := func(verb string) bool {
		return (traits.verbs == nil || slices.Contains(traits.verbs, verb)) && fits(r.Match.Verbs, func(pattern string) bool { return verbFits(pattern, verb) })
	}
	switch {
	case traits.events:
	case len(r.Match.Paths) > 0:
		found.add("when: requests for match.paths have no object: leave it out")
	case !slices.ContainsFunc(changes, possible):
		found.add("when: the requests of this rule have no object, as only %s have one: leave it out, or let match.verbs have one of these", join(changes))
	}
	if _, err := condition.Compile(r.When); err != nil {
		found.add("when: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return found
}

var verbs = append(slices.Clone(answered), "watch", VerbWatchList, "read", "write", "*")

func (m Match) validate(kind Kind, traits traits) MistakesError {
	found := m.validatePaths(kind, traits)
	for _, pattern := range m.Verbs {
		verb := strings.TrimPrefix(pattern, "!")
		if len(m.Paths) == 0 && !slices.Contains(verbs, verb) {
			found.add("match.verbs %q: want one of %s", pattern, join(verbs))
			continue
		}
		if traits.verbs != nil && verb == pattern && !slices.ContainsFunc(traits.verbs, func(v string) bool { return verbFits(verb, v) }) {
			found.add("match.verbs %q: %s is done only to %s", pattern, kind, join(traits.verbs))
		}
	}
	for _, pattern := range m.Resources {
		resource, subresource, slash := strings.Cut(strings.TrimPrefix(pattern, "!"), "/")
		if resource == "" || slash && (subresource == "" || strings.Contains(subresource, "/")) || pattern != strings.ToLower(pattern) {
			found.add("match.resources %q: want one like nodes, deployments.apps or pods/status", pattern)
		}
	}
	found.noneEmpty("match.namespaces", m.Namespaces)
	found.noneEmpty("match.names", m.Names)
	found.noneEmpty("match.userAgents", m.UserAgents)
	return found
}

func (m Match) validatePaths(kind Kind, traits traits) MistakesError {
	if len(m.Paths) == 0 {
		return nil
	}
	var found MistakesError
	if len(m.Resources)+len(m.Namespaces)+len(m.Names) > 0 {
		found.add("match.paths are of requests that are not for a resource: leave resources, namespaces and names out, or paths")
	}
	if traits.events || kind == Stale {
		found.add("match.paths: %s is done only to requests for resources", kind)
	}
	for _, pattern := range m.Paths {
		if !strings.HasPrefix(strings.TrimPrefix(pattern, "!"), "/") {
			found.add(`match.paths %q: want one that begins with "/"`, pattern)
		}
	}
	return found
}

var eventTypes = []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "*"}

func (e Events) validate(kind Kind, traits traits) MistakesError {
	var found MistakesError
	if !traits.events && (!e.all() || e.Initial) {
		found.add("events: %s is done to requests and not to events: leave it out", kind)
		return found
	}
	for _, pattern := range e.Types {
		if !slices.Contains(eventTypes, strings.TrimPrefix(pattern, "!")) {
			found.add("events.types %q: want one of %s", pattern, join(eventTypes))
		}
	}
	found.noneEmpty("events.namespaces", e.Namespaces)
	found.noneEmpty("events.names", e.Names)
	return found
}

func (c Count) validate(kind Kind) MistakesError {
	var found MistakesError
	if c.From < 0 || c.Every < 0 || c.Times < 0 {
		found.add("count: from, every and times cannot be negative")
	}
	if kind == Mark && (c.Every > 0 || c.Times > 0) {
		found.add("count: a Mark is of one moment: only from makes sense")
	}
	if kind == Freeze && (c.Every > 0 || c.Times > 0) {
		found.add("count: a Freeze lasts until its rule is removed: only from makes sense")
	}
	return found
}

func (f Fault) validate(traits traits) MistakesError {
	var found MistakesError
	given := f.given()
	for _, field := range given {
		if !slices.Contains(traits.fields, field) {
			found.add("fault.%s: %s has no such field%s", field, f.Kind, but(traits.fields))
		}
	}
	if slices.Contains(traits.fields, fieldAt) && f.At != "" && f.At != Before && f.At != After {
		found.add("fault.at %q: want %s or %s", f.At, Before, After)
	}
	if f.ResourceVersion != "" && f.AsOf != "" {
		found.add("fault.asOf: leave it out, or resourceVersion")
	}
	for _, field := range traits.needs {
		if !slices.Contains(given, field) {
			found.add("fault.%s: %s needs it", field, f.Kind)
		}
	}
	if slices.Contains(traits.fields, fieldCode) && f.Code != 0 && (f.Code < 400 || f.Code > 599) {
		found.add("fault.code %d: want an HTTP status from 400 to 599", f.Code)
	}
	if time.Duration(f.RetryAfter)%time.Second != 0 {
		found.add("fault.retryAfter %s: want whole seconds, HTTP has no fractions", f.RetryAfter)
	}
	return found
}

func but(fields []field) string {
	if len(fields) == 0 {
		return ""
	}
	return ", but " + join(fields)
}

func join[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = string(item)
	}
	return strings.Join(texts, ", ")
}
