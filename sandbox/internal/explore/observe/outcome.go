// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"time"
)

// Record contains everything observed in a run.
type Record struct {
	Steps    []StepOutcome
	Versions []Version
	Requests []Request
	// Notes lists the actions of explore itself, such as steps and faults.
	Notes []note
	// Habits lists changes that recurred while the cluster was otherwise quiet.
	Habits []Learnt
	// Watches lists the resources that the operator watched at the end of the run.
	Watches []string
	// Restarted lists the resources that the operator watched after a restart at the end of the run,
	// which the record otherwise does not contain. It is nil if there was no such restart.
	Restarted []string
	Output    []string
	// Kinds holds the names of the recorded resources. Never holds the names of the resources that
	// the recorder does not record.
	Kinds, Never []string
	Began        time.Time
	Took         time.Duration
	// StepBegan is the time of the last action of explore in the last step of the run, such as the
	// beginning of this step or a fault.
	StepBegan time.Time
}

// StepOutcome describes a step and the cluster state at its end. Step 0 is the operator's start.
type StepOutcome struct {
	Objects []Version
	// Began is the start time of the step. Revision is the etcd revision at that time.
	Began    time.Time
	Revision int64
	// From is the index of the step's first request in the log. To is the index after the step's
	// last request.
	From, To int
	Took     time.Duration
	// Gap is the longest pause between two changes in the step.
	Gap time.Duration
	// Watches lists the resources that the operator watched at the end of the step.
	Watches []string
	// Reads counts the reads, other than watches, in the quiet time at the end of the step. Idle
	// counts the writes in that time, none of which had an effect.
	Reads, Idle int
	// Waits is set if users wait for a condition at the end of the step.
	Waits bool
}

// Beginnings maps the key of each object to the step in which the object first existed, or to -1 if
// it existed before the run. It also contains the object's general key, which is the key without
// the generated part of the object's name (see Version.GeneralKey).
//
// The map reveals names that are derived from the clock. Two baseline runs that create an object at
// the same time may derive the same name, although the name differs in later runs. But the second
// run is always a step behind the first, so the name appears in different steps of the two runs.
func (o *Record) Beginnings() map[string]int {
	steps := map[string]int{}
	for i := range o.Versions {
		v := &o.Versions[i]
		step := -1 // The object already existed before the run.
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

// IsIn reports whether a time falls into step i, which lasts until the next step begins.
func (o *Record) IsIn(i int, at time.Time) bool {
	end := o.Began.Add(o.Took)
	if i+1 < len(o.Steps) {
		end = o.Steps[i+1].Began
	}
	return !at.Before(o.Steps[i].Began) && at.Before(end)
}

// WritesIn returns the operator's writes in step i. `locks` is the set of keys of objects used for
// leader election.
func (o *Record) WritesIn(i int, locks map[string]bool) []Request {
	var writes []Request
	for j := range o.Requests {
		if r := &o.Requests[j]; r.Resource != "" && o.IsIn(i, r.Time) && r.Writes(locks) {
			writes = append(writes, *r)
		}
	}
	return writes
}

// ReadsIn returns the distinct kinds of the operator's reads in step i, except for watches. `locks`
// is the set of keys of objects used for leader election, and `stable` is the set of keys that are
// the same in each run.
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

// Asks counts the requests of a kind that the operator sends to an application in a step.
type Asks struct {
	Call  Call
	Times int
	// Outdated lists the numbers, counted from 1, of the requests before which the same request had
	// another answer.
	Outdated []int
}

// AsksIn counts the operator's requests to applications in step i, in the order in which each kind
// first occurs. The kinds include the path of a request only if `stable` contains its name key.
func (o *Record) AsksIn(i int, stable map[string]bool) []Asks {
	var all []Asks
	for j := range o.Requests {
		r := &o.Requests[j]
		if !r.ToApplication() || !o.IsIn(i, r.Time) {
			continue
		}
		call := CallOf(r, stable)
		k := slices.IndexFunc(all, func(a Asks) bool { return a.Call == call })
		if k < 0 {
			k, all = len(all), append(all, Asks{Call: call})
		}
		all[k].Times++
		if r.Older {
			all[k].Outdated = append(all[k].Outdated, all[k].Times)
		}
	}
	return all
}

// Paths returns the name keys (see NameKey) of the operator's HTTP requests to applications.
func (o *Record) Paths() map[string]bool {
	paths := map[string]bool{}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.ToApplication() && r.Name != "" {
			paths[NameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	return paths
}

// Unnamed stands for the unknown field managers of an object that has no managedFields. Any client
// can remove the managedFields of an object.
const Unnamed = ""

// Managers returns the field managers of all versions. It includes Unnamed if a version written
// during the run has no managedFields.
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

// Managers returns a version's field managers, or Unnamed if the version has no managedFields.
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

// Wrote reports whether the operator has successfully created or changed the object with the given
// key. If the key contains *, which stands for a part that differs from run to run, any matching
// object counts.
func (o *Record) Wrote(key string) bool { return o.writes(key, false) }

// Touched is like Wrote, but also returns true if the operator has written only a subresource, such
// as the status.
func (o *Record) Touched(key string) bool { return o.writes(key, true) }

func (o *Record) writes(key string, subresources bool) bool {
	beginning, _, several := strings.Cut(key, "*") // Like "secrets default/a-*" or "secrets default/* of ConfigMap a".
	return slices.ContainsFunc(o.Requests, func(r Request) bool {
		resource, _, sub := strings.Cut(r.Resource, "/")
		if !r.Writes(nil) || !r.Succeeded() || r.Verb == "delete" || sub && !subresources {
			return false
		}
		written := NameKey(resource, r.Namespace, r.Name)
		return written == key || several && (strings.HasPrefix(written, beginning) || r.Name == "" && strings.HasPrefix(beginning, written))
	})
}

// StepAt returns the number of the step that a time falls into, in a workload with the given number
// of steps. The step after the last step in o.Steps counts as begun at StepBegan.
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
