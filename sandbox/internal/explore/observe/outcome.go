// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"time"
)

// Record is all that was observed in a run.
type Record struct {
	Steps    []StepOutcome
	Versions []Version
	Requests []Request
	// Notes are the actions of the kit.
	Notes []note
	// Habits are changes that came again and again while all was at rest.
	Habits []Learnt
	// Watches are the resources that the operator watches at the end.
	Watches []string
	Output  []string
	// Kinds are the resources of which all versions are recorded, and Never the resources without any.
	Kinds, Never []string
	Began        time.Time
	Took         time.Duration
	// StepBegan is the time of the last action of the kit: the last step began then, or later.
	StepBegan time.Time
}

// StepOutcome is the cluster when a step had settled. The first is the operator's start.
type StepOutcome struct {
	Objects []Version
	// Began is when, and Revision as of which the step began.
	Began    time.Time
	Revision int64
	// From and To are the requests of the step.
	From, To int
	Took     time.Duration
	// Gap is the longest time in which nothing happened before something else did.
	Gap time.Duration
	// Watches are the resources that the operator watches then.
	Watches []string
	// Reads is how many reads, which are not watches, there were while all was quiet, and Idle
	// how many writes that changed nothing.
	Reads, Idle int
	// Waits: users wait for something before they go on.
	Waits bool
}

// Beginnings returns the step in which there first was an object, by what it and those with
// generated names like it are called. What one run has in a step, and the other in another, has
// its name from the time, and both came to that step at the same one.
func (o *Record) Beginnings() map[string]int {
	steps := map[string]int{}
	for i := range o.Versions {
		v := &o.Versions[i]
		step := -1 // It was there before.
		for j := range o.Steps {
			if !v.Initial && o.IsIn(j, v.Time) {
				step = j
			}
		}
		for _, key := range []string{v.Key(), v.GeneralKey()} {
			if _, known := steps[key]; !known {
				steps[key] = step
			}
		}
	}
	return steps
}

// IsIn reports whether a moment is in the i-th step, which lasts until the next begins.
func (o *Record) IsIn(i int, at time.Time) bool {
	end := o.Began.Add(o.Took)
	if i+1 < len(o.Steps) {
		end = o.Steps[i+1].Began
	}
	return !at.Before(o.Steps[i].Began) && at.Before(end)
}

// WritesIn returns the writes of the operator in the i-th step.
func (o *Record) WritesIn(i int, locks map[string]bool) []Request {
	var writes []Request
	for j := range o.Requests {
		if r := &o.Requests[j]; r.Resource != "" && o.IsIn(i, r.Time) && r.Writes(locks) {
			writes = append(writes, *r)
		}
	}
	return writes
}

// ReadsIn returns the kinds of reads of the operator in the i-th step, without watches.
func (o *Record) ReadsIn(i int, locks, stable map[string]bool) []Call {
	var calls []Call
	for j := range o.Requests {
		r := &o.Requests[j]
		if r.Resource == "" || !o.IsIn(i, r.Time) || !r.reads(locks) {
			continue
		}
		if call := CallOf(r, stable); !slices.Contains(calls, call) {
			calls = append(calls, call)
		}
	}
	return calls
}

// Managers returns by whom the objects of a run were written, by their managedFields.
func (o *Record) Managers() []string {
	var all []string
	for i := range o.Versions {
		for _, by := range o.Versions[i].Object.GetManagedFields() {
			if !slices.Contains(all, by.Manager) {
				all = append(all, by.Manager)
			}
		}
	}
	return all
}

// Wrote reports whether the operator has written to an object, or to one of those of an entry of
// a [State].
func (o *Record) Wrote(key string) bool {
	beginning, several := strings.CutSuffix(key, "*")
	return slices.ContainsFunc(o.Requests, func(r Request) bool {
		if !r.Writes(nil) || !r.Succeeded() || r.Verb == "delete" || strings.Contains(r.Resource, "/") {
			return false
		}
		written := NameKey(r.Resource, r.Namespace, r.Name)
		return written == key || several && (strings.HasPrefix(written, beginning) || r.Name == "" && strings.HasPrefix(beginning, written))
	})
}

// StepAt returns the step of a moment, of a workload with that many steps. A step that is not over
// has no outcome.
func (o *Record) StepAt(at time.Time, steps int) int {
	step := 0
	for i := range o.Steps {
		if !o.Steps[i].Began.After(at) {
			step = i
		}
	}
	if len(o.Steps) <= steps && o.StepBegan.Before(at) {
		step = len(o.Steps)
	}
	return step
}
