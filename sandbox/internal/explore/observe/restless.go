// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// RestlessFor is the length of the period before the current time in which changes are counted, to
// find the most frequent change.
const RestlessFor = 10 * time.Second

// Standing returns the given differences, except for differences in objects that were created or
// changed after `since`.
func Standing(all []state.Difference, names Names, versions []Version, since time.Time) []state.Difference {
	moving := map[string]bool{}
	for i := range versions {
		if v := &versions[i]; !v.Initial && v.Time.After(since) && v.Type != watch.Deleted {
			moving[names.Key(v)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(d state.Difference) bool { return moving[d.Object] })
}

// Restless describes the most frequent change in the period of the length `while` that ends at
// `now`. It considers the operator's writes that had an effect or were rejected. If there are no
// such writes, it considers the changes by any client. `locks` is the set of keys of objects used
// for leader election, which are ignored.
func Restless(requests []Request, versions []Version, locks map[string]bool, while time.Duration, now time.Time) string {
	often, last := map[string]int{}, ""
	since := now.Add(-while)
	note := func(text string) {
		if often[text]++; last == "" || often[text] > often[last] || often[text] == often[last] && text < last {
			last = text
		}
	}
	changed := map[string]bool{}
	for i := range versions {
		if v := &versions[i]; !v.Initial && !v.Habit && v.Time.After(since) {
			changed[v.Key()] = true
		}
	}
	for i := range requests {
		r := &requests[i]
		if r.Writes(locks) && r.Time.After(since) && (changed[NameKey(r.Resource, r.Namespace, r.Name)] || !r.Succeeded() && !r.DeletesNothing()) {
			note("the operator's " + Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}.String())
		}
	}
	if last == "" { // None of the operator's writes had an effect or was rejected.
		for i := range versions {
			if v := &versions[i]; !v.Initial && !v.Habit && !v.Heartbeat() && v.Time.After(since) {
				note(strings.ToLower(string(v.Type)) + " " + v.Key())
			}
		}
	}
	if last == "" {
		return "it does not come to rest; the last writes are"
	}
	return fmt.Sprintf("it does not come to rest: %s, %s in the last %s; the last writes are", last, words.Times(often[last]), while)
}
