// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"time"
)

// Record is everything that was observed in a run.
type Record struct {
	Steps    []StepOutcome
	Versions []Version
	Requests []Request
	// Notes are the actions of explore itself.
	Notes []note
	// Habits are changes that recurred in a cluster that was otherwise quiet.
	Habits []Learnt
	// Watches are the resources that the operator watched at the end.
	Watches []string
	Output  []string
	// Kinds are the recorded resources, and Never the resources that are not recorded.
	Kinds, Never []string
	Began        time.Time
	Took         time.Duration
	// StepBegan is the time of the last action of explore: the last step began at that time, or
	// later.
	StepBegan time.Time
}

// StepOutcome is the state of the cluster at the end of a step. Step 0 is the start of the
// operator.
type StepOutcome struct {
	Objects []Version
	// Began is the time, and Revision the etcd revision, at which the step began.
	Began    time.Time
	Revision int64
	// From and To are the indexes of the first request of the step, and of the first request after
	// it.
	From, To int
	Took     time.Duration
	// Gap is the longest pause between two events of the step.
	Gap time.Duration
	// Watches are the resources that the operator watched at the end of the step.
	Watches []string
	// Reads is the number of reads, other than watches, in the quiet time at the end, and Idle the
	// number of writes, which had no effect.
	Reads, Idle int
	// Waits is set if users wait for a condition at the end of the step.
	Waits bool
}

// Beginnings returns the step in which each object first existed (-1: before the run), by key
// and by general key. A name that two runs have in different steps is derived from the time of
// day: the runs are played a step apart, and created the object at the same time.
func (o *Record) Beginnings() map[string]int {
	steps := map[string]int{}
	for i := range o.Versions {
		v := &o.Versions[i]
		step := -1 // The object existed before the run.
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

// IsIn reports whether a time is in step i, which lasts until the next step begins.
func (o *Record) IsIn(i int, at time.Time) bool {
	end := o.Began.Add(o.Took)
	if i+1 < len(o.Steps) {
		end = o.Steps[i+1].Began
	}
	return !at.Before(o.Steps[i].Began) && at.Before(end)
}

// WritesIn returns the writes of the operator in step i.
func (o *Record) WritesIn(i int, locks map[string]bool) []Request {
	var writes []Request
	for j := range o.Requests {
		if r := &o.Requests[j]; r.Resource != "" && o.IsIn(i, r.Time) && r.Writes(locks) {
			writes = append(writes, *r)
		}
	}
	return writes
}

// ReadsIn returns the kinds of reads of the operator in step i, other than watches.
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

// Unnamed is the name of the writers of an object without managedFields, which any client can
// remove.
const Unnamed = ""

// Managers returns the field managers in the managedFields of all versions, and Unnamed if a
// version written in the run has no managedFields.
func (o *Record) Managers() []string {
	var all []string
	for i := range o.Versions {
		for _, manager := range o.Versions[i].Managers() {
			if !slices.Contains(all, manager) && (manager != Unnamed || !o.Versions[i].Initial) {
				all = append(all, manager)
			}
		}
	}
	return all
}

// Managers returns the field managers of a version, or Unnamed if it has no managedFields.
func (v *Version) Managers() []string {
	fields := v.Object.GetManagedFields()
	if len(fields) == 0 {
		return []string{Unnamed}
	}
	var all []string
	for _, by := range fields {
		all = append(all, by.Manager)
	}
	return all
}

// Wrote reports whether the operator has written to the object with a key, or to an object that
// a general key (with *) covers.
func (o *Record) Wrote(key string) bool { return o.writes(key, false) }

// Touched is Wrote, or that the operator wrote a subresource, such as the status.
func (o *Record) Touched(key string) bool { return o.writes(key, true) }

func (o *Record) writes(key string, subresources bool) bool {
	beginning, _, several := strings.Cut(key, "*") // Such as "secrets default/a-*", or "secrets default/* of ConfigMap a".
	return slices.ContainsFunc(o.Requests, func(r Request) bool {
		resource, _, sub := strings.Cut(r.Resource, "/")
		if !r.Writes(nil) || !r.Succeeded() || r.Verb == "delete" || sub && !subresources {
			return false
		}
		written := NameKey(resource, r.Namespace, r.Name)
		return written == key || several && (strings.HasPrefix(written, beginning) || r.Name == "" && strings.HasPrefix(beginning, written))
	})
}

// StepAt returns the number of the step at a time, in a workload with that many steps. The step
// in progress has no outcome yet.
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
