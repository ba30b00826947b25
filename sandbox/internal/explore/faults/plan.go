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
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// PlanAll returns all faults to inject for the operator with the given baseline, highest score
// first.
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
		planAsks(b, step, add)
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

// MostPromisingFirst sorts planned faults by descending score. It sorts faults with equal scores by
// a hash of their names, so that similar faults do not follow each other.
func MostPromisingFirst(all []Planned) {
	slices.SortStableFunc(all, func(x, y Planned) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(hash(x.Name()), hash(y.Name())))
	})
}

// PlanReactions plans the faults that fuzz injects into the operator's writes after an edit of an
// object, highest score first. It skips failed writes, such as the deletion of a missing object,
// because a fault would change little about them. `locks` is the set of keys of objects used for
// leader election.
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

// planWrites plans the faults that hit the operator's writes in a step. It calls `add` for each
// fault with the fault's score.
func planWrites(b *baseline.Baseline, step int, add func(int, Fault)) {
	earlier := map[observe.Call]bool{}
	for i := range step {
		for j := range b.Steps[i].Writes {
			earlier[observe.CallOf(&b.Steps[i].Writes[j], b.Names.Stable)] = true
		}
	}
	PlanCalls(b.Steps[step].Writes, step, b.Names.Stable, earlier, b.Elects, add)
}

// PlanCalls plans the faults for a list of writes, and calls `add` with the score of each fault.
// `stable` is the set of object keys that are the same in each run. `earlier` is the set of kinds
// of writes in earlier steps; these kinds score lower. A crash between two writes scores high,
// because few operators are tested with it. Faults that need a second process of the operator are
// planned only if `elects` is set, for operators that elect a leader.
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
			value -= 30 // The object was missing, so the deletion has no effect.
		case call.Verb == "delete":
			value, deleted = value+15, true
		case deleted:
			// A write after a deletion scores higher: the operator may have derived it from the
			// deleted object.
			value += 12
		case call.Verb == "create":
			value -= 8 // Most operators handle the creation of missing objects correctly.
		}
		if strings.HasSuffix(call.Resource, "/status") {
			value -= 10
		}
		if strings.Contains(call.Resource, "/") && call.Verb == "create" {
			value -= 15 // The API server stores no object for requests such as evictions and tokens.
		}
		if call.Resource == "persistentvolumeclaims" {
			value += 8 // Data in a PersistentVolumeClaim cannot be recovered.
		}
		if earlier[call] {
			value -= 12
		}
		// The first of several similar writes in a step scores highest, because it reveals the most
		// problems.
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

// planReads plans the faults that hit the operator's reads in a step, except for watches. It calls
// `add` for each fault with the fault's score.
func planReads(s *baseline.BaseStep, step int, add func(int, Fault)) {
	for _, call := range s.ReadCalls {
		for _, e := range Hitting(Write) {
			if e.ReadScore == 0 || e.Duration() > 0 && call.Verb == "watchlist" {
				continue // Delaying a streaming list delays its events, which other faults already do.
			}
			add(e.ReadScore, Fault{Kind: e.Kind, Step: step, Call: &call, Nth: 1})
		}
	}
}

// planAsks plans the faults that hit the operator's requests to applications in a step. It calls `add`
// for each fault with the fault's score. Kinds of requests that occur in earlier steps score lower, and
// so do the later ones of several similar requests.
func planAsks(b *baseline.Baseline, step int, add func(int, Fault)) {
	for _, asks := range b.Steps[step].Asks {
		value := 0
		if slices.ContainsFunc(b.Steps[:step], func(s baseline.BaseStep) bool {
			return slices.ContainsFunc(s.Asks, func(earlier observe.Asks) bool { return earlier.Call == asks.Call })
		}) {
			value = -12
		}
		for nth := 1; nth <= asks.Times; nth++ {
			for i := range Table {
				e := &Table[i]
				score := e.ApplicationScore
				if e.Hits == Ask {
					score = e.Score
				}
				switch {
				case score == 0,
					e.NeedsProgram && !b.Programs[asks.Call.Resource],
					e.Rule.Kind == fault.Stale && !slices.Contains(asks.Outdated, nth):
					continue
				}
				add(value-10*(nth-1)+score, Fault{Kind: e.Kind, Step: step, Call: &asks.Call, Nth: nth})
			}
		}
	}
}

// planEvents plans the faults that hit the operator's watch events in a step. It calls `add` for
// each fault with the fault's score. `last` is the number of the last step.
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

// planSpans plans several faults that hit all events of a resource from `step` on. The first fault
// ends at the end of `step`, and each of the others at the end of a later step. `made` is the
// resource's score (see Baseline.Interest).
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
	// The fault lasts at most until the first step in which an object waits for the operator to
	// remove its finalizers, because the next step might need the object to be deleted. It also
	// lasts at most until the first step in which users wait for the operator.
	for until := step + 1; until <= last && !b.Steps[until-1].Dying && !b.Steps[until-1].Waits; until++ {
		missed := b.Missed(step, until, resource)
		value := e.SpanScore + made - (until - step) + missed
		if e.ListsAfter && missed > 0 {
			value += 2 // The list that follows the fault does not contain the intermediate states.
		}
		add(value, Fault{Kind: e.Kind, Step: step, Until: until, Resource: resource})
	}
}

// planSingleEvents plans the faults that hit single events of a resource, which has `n` events in
// the step. `made` is the resource's score (see Baseline.Interest). If the score is high, because
// the operator or users write the resource, faults are planned for every event. Otherwise, they are
// planned for every third event.
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

// planStale plans restarts with stale lists, for the resources whose initial list may come from an
// API server's cache.
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
			// Also plan an outdated list of this resource alone, because an API server has a
			// separate cache for each resource.
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
		// If none of the listed resources has changed since the step `moment` began, the stale
		// lists would equal the current lists.
		if slices.ContainsFunc(b.Listed, func(resource string) bool { return changed[resource] }) {
			add(e.Score+15-(step-moment), Fault{Kind: e.Kind, Step: step, AsOf: fmt.Sprintf("step %d", moment)})
		}
	}
}
