// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// PlanAll returns the faults to play for an operator, highest score first.
func PlanAll(b *baseline.Baseline) []Planned {
	var all []Planned
	add := func(score int, f Fault) {
		f.Until = max(f.Until, f.Step)
		all = append(all, Planned{f, score})
	}
	last := len(b.Steps) - 1
	for step := range b.Steps {
		planWrites(b, step, add)
		planReads(&b.Steps[step], step, add)
		planEvents(b, step, last, add)
		if step > 0 {
			for _, e := range Hitting(Start) {
				if e.StaleLists {
					planStale(b, e, step, add)
				} else {
					add(e.Score, Fault{Kind: e.Kind, Step: step})
				}
			}
		}
	}
	MostPromisingFirst(all)
	return all
}

// MostPromisingFirst sorts planned faults by score, highest first; equal scores are in a fixed
// order that looks random.
func MostPromisingFirst(all []Planned) {
	slices.SortStableFunc(all, func(x, y Planned) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(hash(x.Name()), hash(y.Name())))
	})
}

// PlanReactions plans the faults that fuzz plays for the writes of the operator in response to an
// edit, most promising first. Writes that failed, such as the deletion of a missing object, are
// left out, as there is little to disturb.
func PlanReactions(requests []observe.Request, versions []observe.Version, locks map[string]bool) Faults {
	stable := map[string]bool{}
	for i := range versions {
		if key := versions[i].Key(); (observe.Names{}).Key(&versions[i]) == key {
			stable[key] = true
		}
	}
	var writes []observe.Request
	seen, failed := map[observe.Call]int{}, map[string]bool{}
	for _, r := range requests {
		if r.Resource != "" && r.Writes(locks) {
			writes = append(writes, r)
			call := observe.CallOf(&r, stable)
			seen[call]++
			failed[fmt.Sprint(call, seen[call])] = !r.Succeeded()
		}
	}
	var all Faults
	PlanCalls(writes, Disturbed, stable, nil, false, func(score int, f Fault) {
		if !failed[fmt.Sprint(f.Call, f.Nth)] && f.Entry().InFuzz {
			all = append(all, Planned{Fault: f, Score: score})
		}
	})
	MostPromisingFirst(all)
	return all
}

// planWrites plans the faults for the writes of a step.
func planWrites(b *baseline.Baseline, step int, add func(int, Fault)) {
	earlier := map[observe.Call]bool{}
	for i := range step {
		for j := range b.Steps[i].Writes {
			earlier[observe.CallOf(&b.Steps[i].Writes[j], b.Names.Stable)] = true
		}
	}
	PlanCalls(b.Steps[step].Writes, step, b.Names.Stable, earlier, b.Elects, add)
}

// PlanCalls plans the faults for some writes; earlier are the kinds of writes in earlier steps,
// which score lower. A crash between two writes scores high, as few operators are tested with
// it. Faults that need a second process are planned only for an operator that elects a leader.
func PlanCalls(writes []observe.Request, step int, stable map[string]bool, earlier map[observe.Call]bool, elects bool, add func(int, Fault)) {
	seen := map[observe.Call]int{}
	deleted := false
	for i := range writes {
		call := observe.CallOf(&writes[i], stable)
		seen[call]++
		value := 0
		if i+1 < len(writes) {
			value += 15
		}
		switch {
		case call.Verb == "delete" && writes[i].Upstream == http.StatusNotFound:
			value -= 30 // The object was missing, so that the write has no effect.
		case call.Verb == "delete":
			value, deleted = value+15, true
		case deleted:
			// The operator may have derived this write from the object that is now deleted.
			value += 12
		case call.Verb == "create":
			value -= 8 // Most operators create missing objects correctly.
		}
		if strings.HasSuffix(call.Resource, "/status") {
			value -= 10
		}
		if strings.Contains(call.Resource, "/") && call.Verb == "create" {
			value -= 15 // The API server stores no object, as for an eviction or a token.
		}
		if call.Resource == "persistentvolumeclaims" {
			value += 8 // Data in a claim cannot be recovered.
		}
		if earlier[call] {
			value -= 12
		}
		// Among similar writes in a step, faults of the first find the most problems.
		value -= 10 * (seen[call] - 1)
		for _, e := range Hitting(Write) {
			switch {
			case e.Only == First && i > 0,
				e.Only == Changes && call.Verb != "update" && call.Verb != "patch",
				e.Only == Elected && !elects:
				continue
			}
			add(value+e.Score, Fault{Kind: e.Kind, Step: step, Call: &call, Nth: seen[call]})
		}
	}
}

// planReads plans the faults for the reads of a step, other than watches.
func planReads(s *baseline.BaseStep, step int, add func(int, Fault)) {
	for _, call := range s.ReadCalls {
		for _, e := range Hitting(Write) {
			if e.ReadScore == 0 || e.Duration() > 0 && call.Verb == "watchlist" {
				continue // A delay of a streamed list would delay events, which other faults do.
			}
			add(e.ReadScore, Fault{Kind: e.Kind, Step: step, Call: &call, Nth: 1})
		}
	}
}

// planEvents plans the faults for the watch events of a step.
func planEvents(b *baseline.Baseline, step, last int, add func(int, Fault)) {
	for resource, n := range b.Steps[step].Events {
		if n == 0 {
			continue
		}
		made := b.Interest(step, resource)
		for _, e := range Hitting(Events) {
			planSpans(b, e, step, last, resource, made, add)
		}
		planSingleEvents(step, resource, n, made, add)
	}
}

// planSpans plans a fault that hits all events of a resource: until the end of the step, and
// until the end of each later step.
func planSpans(b *baseline.Baseline, e *Entry, step, last int, resource string, made int, add func(int, Fault)) {
	value := e.Score
	if e.ByInterest {
		value += made
	}
	if e.Holds {
		value += b.Expected(step, resource)
	}
	add(value, Fault{Kind: e.Kind, Step: step, Resource: resource})
	if e.SpanScore == 0 {
		return
	}
	// A span cannot go beyond a deletion, which waits for the operator: users would perform the
	// next step on an object that still exists. Nor can it go beyond a step in which users wait for
	// the operator.
	for until := step + 1; until <= last && !b.Steps[until-1].Dying && !b.Steps[until-1].Waits; until++ {
		missed := b.Missed(step, until, resource)
		value := e.SpanScore + made - (until - step) + missed
		if e.ListsAfter && missed > 0 {
			value += 2 // The list at the end does not contain the states in between.
		}
		add(value, Fault{Kind: e.Kind, Step: step, Until: until, Resource: resource})
	}
}

// planSingleEvents plans the faults for single events of a resource in a step: each event of
// resources that the operator or users write, and every third event of other resources.
func planSingleEvents(step int, resource string, n, made int, add func(int, Fault)) {
	stride := 1
	if made < 8 {
		stride = 3
	}
	for nth := 1; nth <= n; nth += stride {
		for _, e := range Hitting(Event) {
			value := e.Score
			if e.ByInterest {
				value += made
			}
			f := Fault{Kind: e.Kind, Step: step, Resource: resource}
			if nth > 1 {
				f.Nth = nth
			}
			add(value-3*(nth-1), f)
		}
	}
}

// planStale plans restarts with stale lists, for resources that the operator lists from a
// cache.
func planStale(b *baseline.Baseline, e *Entry, step int, add func(int, Fault)) {
	if len(b.Listed) == 0 {
		return
	}
	for key, deleted := range b.Deletions {
		if deleted <= step {
			value := e.Score
			if b.Roots[key] {
				value += 20
			}
			if deleted < step {
				value += 15
			}
			add(value, Fault{Kind: e.Kind, Step: step, AsOf: "deleting " + key})
			// An API server has a cache for each resource, and a single cache may be behind.
			resource, _, _ := strings.Cut(key, " ")
			add(value+3, Fault{Kind: e.Kind, Step: step, AsOf: "deleting " + key, Resource: resource})
		}
	}
	changed := map[string]bool{}
	for moment := step; moment >= 1; moment-- {
		for _, resource := range b.Listed {
			changed[resource] = changed[resource] || b.Steps[moment].Events[resource] > 0
			if b.Steps[step].Events[resource] > 0 {
				add(e.Score-10, Fault{Kind: e.Kind, Step: step, AsOf: fmt.Sprintf("step %d", moment), Resource: resource})
			}
		}
		// Without a change, no stale list would differ from a current list.
		if slices.ContainsFunc(b.Listed, func(resource string) bool { return changed[resource] }) {
			add(e.Score+15-(step-moment), Fault{Kind: e.Kind, Step: step, AsOf: fmt.Sprintf("step %d", moment)})
		}
	}
}
