// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// plan returns the faults that can be played, most promising first.
func plan(b *Baseline) []planned {
	var all []planned
	add := func(score int, f Fault) {
		f.Until = max(f.Until, f.Step)
		all = append(all, planned{f, score})
	}
	last := len(b.Steps) - 1
	for step := range b.Steps {
		planWrites(b, step, add)
		planReads(&b.Steps[step], step, add)
		planEvents(b, step, last, add)
		if step > 0 {
			add(50, Fault{Kind: Restart, Step: step})
			planStale(b, step, add)
		}
	}
	mostPromisingFirst(all)
	return all
}

func mostPromisingFirst(all []planned) {
	slices.SortStableFunc(all, func(x, y planned) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(hash(x.name()), hash(y.name())))
	})
}

// planWrites plans the faults of the writes of a step.
func planWrites(b *Baseline, step int, add func(int, Fault)) {
	earlier := map[Call]bool{}
	for i := range step {
		for j := range b.Steps[i].Writes {
			earlier[callOf(&b.Steps[i].Writes[j], b.names.stable)] = true
		}
	}
	planCalls(b.Steps[step].Writes, step, b.names.stable, earlier, b.Elects, add)
}

// planCalls plans the faults of some writes, of which those before have shown some. A crash
// between a write and those that follow it is what most operators were not tried with. Only
// an operator that elects a leader has another process that can lead.
func planCalls(writes []Request, step int, stable map[string]bool, earlier map[Call]bool, elects bool, add func(int, Fault)) {
	seen := map[Call]int{}
	deleted := false
	for i := range writes {
		call := callOf(&writes[i], stable)
		seen[call]++
		value := 50
		if i+1 < len(writes) {
			value += 15
		}
		switch {
		case call.Verb == "delete" && writes[i].Upstream == http.StatusNotFound:
			value -= 30 // Nothing was there, so nothing comes of it.
		case call.Verb == "delete":
			value, deleted = value+15, true
		case deleted:
			// What was deleted may be what the operator would know from.
			value += 12
		case call.Verb == "create":
			value -= 8 // Most operators make what is missing.
		}
		if strings.HasSuffix(call.Resource, "/status") {
			value -= 10
		}
		if strings.Contains(call.Resource, "/") && call.Verb == "create" {
			value -= 15 // Nothing is stored.
		}
		if call.Resource == "persistentvolumeclaims" {
			value += 8 // What is lost there is lost.
		}
		if earlier[call] {
			value -= 12
		}
		// Of many alike, the first ones tell most.
		value -= 10 * (seen[call] - 1)
		for kind, less := range map[Kind]int{CrashAfter: 0, CrashBefore: 5, LoseAnswer: 20, ServerError: 22, Conflict: 25, Throttle: 40, Refuse: 42, Late: 45, Overtake: 18, Pause: 21, CrashTwice: 30, CutOff: 41, Timeout: 43, Unavailable: 44, Invalid: 44, KillAPIServer: 39, KillEtcd: 40} {
			if kind == KillAPIServer || kind == KillEtcd {
				if i > 0 {
					continue // It breaks off all that is under way in this step.
				}
			}
			if (kind == Conflict || kind == Overtake) && call.Verb != "update" && call.Verb != "patch" {
				continue // There is nothing that another client has changed.
			}
			if kind == Pause && !elects {
				continue // There is no other process.
			}
			add(value-less, Fault{Kind: kind, Step: step, Call: &call, Nth: seen[call]})
		}
	}
}

// planReads plans the faults of the reads of a step that are no watches.
func planReads(s *BaseStep, step int, add func(int, Fault)) {
	for _, call := range s.ReadCalls {
		for kind, value := range map[Kind]int{ServerError: 16, Refuse: 14, Late: 8} {
			if kind == Late && call.Verb == "watchlist" {
				continue // What comes late are its events.
			}
			add(value, Fault{Kind: kind, Step: step, Call: &call, Nth: 1})
		}
	}
}

// planEvents plans the faults of the events of a step.
func planEvents(b *Baseline, step, last int, add func(int, Fault)) {
	for resource, n := range b.Steps[step].Events {
		if n == 0 {
			continue
		}
		made := b.interest(step, resource)
		add(50+made, Fault{Kind: Freeze, Step: step, Resource: resource})
		add(40+made, Fault{Kind: DropEvents, Step: step, Resource: resource})
		// An operator that sees nothing holds up a deletion, and what users do after it
		// would be done to an object that is still there. And users who wait for something
		// do not go on without it.
		for until := step + 1; until <= last && !b.Steps[until-1].Dying && !b.Steps[until-1].Waits; until++ {
			missed := b.missed(step, until, resource)
			value := 49 + made - (until - step) + missed
			add(value, Fault{Kind: Freeze, Step: step, Until: until, Resource: resource})
			if missed > 0 {
				value += 2 // What is listed in the end shows nothing of what was in between.
			}
			add(value-1, Fault{Kind: DropEvents, Step: step, Until: until, Resource: resource})
		}
		add(20+b.expected(step, resource), Fault{Kind: FreezeLong, Step: step, Resource: resource})
		planSingleEvents(step, resource, n, made, add)
	}
}

// planSingleEvents plans the faults of each event of a resource in a step; where the operator
// and users do not write it, of every third.
func planSingleEvents(step int, resource string, n, made int, add func(int, Fault)) {
	stride := 1
	if made < 8 {
		stride = 3
	}
	for nth := 1; nth <= n; nth += stride {
		for kind, value := range map[Kind]int{ExpireWatch: 18 + made, CrashEvent: 16 + made, DropEvent: 14 + made, LateEvent: 18, CutWatch: 12, DuplicateEvent: 10} {
			f := Fault{Kind: kind, Step: step, Resource: resource}
			if nth > 1 {
				f.Nth = nth
			}
			add(value-3*(nth-1), f)
		}
	}
}

// missed says how promising it is that an operator that sees nothing of a resource from one
// step on until another sees what users want at the end, and not what they wanted in
// between: most if both steps change the same field.
func (b *Baseline) missed(step, until int, resource string) int {
	missed := 0
	for edit := range b.Steps[step].Edited {
		main, _, _ := strings.Cut(edit, " ")
		switch {
		case main != resource:
		case b.Steps[until].Edited[edit]:
			return 16
		case len(b.Steps[until].Edited) > 0:
			missed = 4
		}
	}
	return missed
}

// interest says how promising the events of a resource are: most for what users write and
// the operator reads, much for what the operator makes, and little for the rest.
func (b *Baseline) interest(step int, resource string) int {
	for key := range b.Roots {
		if main, _, _ := strings.Cut(key, " "); main == resource {
			return 12
		}
	}
	interest := 0
	for i := range b.Steps[step].Writes {
		if w := &b.Steps[step].Writes[i]; w.Resource == resource && (w.Verb == "create" || w.Verb == "delete") {
			interest = 8
		}
	}
	// Their state is what most operators wait for.
	if resource == "pods" || strings.HasSuffix(resource, ".apps") {
		interest += 3
	}
	return interest
}

// expected says how promising it is that what an operator expects of a resource expires:
// most if it makes objects of it, as it would make them again.
func (b *Baseline) expected(step int, resource string) int {
	expected := 0
	for i := range b.Steps[step].Writes {
		if w := &b.Steps[step].Writes[i]; w.Resource == resource {
			expected = max(expected, map[string]int{"create": 12, "delete": 8}[w.Verb])
		}
	}
	return expected
}

// planStale plans starts on older lists, where the operator's lists may be that.
func planStale(b *Baseline, step int, add func(int, Fault)) {
	if len(b.Listed) == 0 {
		return
	}
	for key, deleted := range b.deletions {
		if deleted <= step {
			value := 40
			if b.Roots[key] {
				value += 20
			}
			if deleted < step {
				value += 15
			}
			add(value, Fault{Kind: StaleStart, Step: step, AsOf: "deleting " + key})
			// An API server has a cache for each resource, and one may be behind the others.
			resource, _, _ := strings.Cut(key, " ")
			add(value+3, Fault{Kind: StaleStart, Step: step, AsOf: "deleting " + key, Resource: resource})
		}
	}
	changed := map[string]bool{}
	for moment := step; moment >= 1; moment-- {
		for _, resource := range b.Listed {
			changed[resource] = changed[resource] || b.Steps[moment].Events[resource] > 0
			if b.Steps[step].Events[resource] > 0 {
				add(30, Fault{Kind: StaleStart, Step: step, AsOf: fmt.Sprintf("step %d", moment), Resource: resource})
			}
		}
		// Otherwise no list differs from one of now.
		if slices.ContainsFunc(b.Listed, func(resource string) bool { return changed[resource] }) {
			add(55-(step-moment), Fault{Kind: StaleStart, Step: step, AsOf: fmt.Sprintf("step %d", moment)})
		}
	}
}
