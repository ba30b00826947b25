// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Baseline is the behaviour of an operator in undisturbed runs.
type Baseline struct {
	Steps []BaseStep
	// Locks are the objects by which the operator elects its leader, Roots the objects that it
	// watches and that users made.
	Locks, Roots map[string]bool
	// Elects: it elects its leader by Leases, so there may be several processes.
	Elects bool
	// Watched are the resources that the operator watches; Listed those of them whose
	// first list may be stale: as of resourceVersion 0, which any API server may answer
	// from its cache.
	Watched []string
	Listed  []string
	// AtStart are the resources that it watches as soon as it has started.
	AtStart []string
	// MakesPods: the operator creates pods itself.
	MakesPods bool
	Counts    [2]Counts
	// Uncounted are the keys that the two runs have different numbers of.
	Uncounted map[string]bool
	// Broken are invariants that do not hold undisturbed either.
	Broken map[string]bool
	// Quiet is how long nothing happens when all is at rest.
	Quiet time.Duration
	// Managers are by whom objects are written.
	Managers map[string]bool
	// Habits are done again and again while all is at rest, and are not unrest.
	Habits map[observe.Habit]bool

	Names observe.Names
	// Deletions are the keys of objects that were being deleted, with the step.
	Deletions map[string]int
}

// ShortQuiet is how long nothing happens when all is at rest, where nothing slower was seen.
const ShortQuiet = time.Second

// BaseStep is the undisturbed end of a step.
type BaseStep struct {
	State observe.State
	Mask  *state.Mask
	Took  time.Duration
	// Reads are how many there are at rest, and Idle how many writes that change nothing.
	Reads, Idle int
	// Quiet is how long nothing happens in this step when all is at rest.
	Quiet time.Duration
	// Writes are the operator's writes in this step.
	Writes []observe.Request
	// ReadCalls are the kinds of its reads in this step that are no watches.
	ReadCalls []observe.Call
	// Last is the last kind of write that both runs have in this step, and Lasts how many
	// of it come in each: all may be at rest when they have. 0: there is none.
	Last  observe.Call
	Lasts int
	// Edited are the fields of roots that are changed in this step: KEY PATH.
	Edited map[string]bool
	// Dying: a root is deleted in this step, and is gone only when its finalizers are.
	Dying bool
	// Waits: users wait for something before they go on.
	Waits bool
	// Events counts the versions of each resource that the operator watches.
	Events map[string]int
}

// Learn makes a baseline of two undisturbed runs. They may be one and the same, with
// the baseline of a longer workload that has the same steps and more: then that one says
// what differs from run to run.
func Learn(a, b *observe.Record, broken []string, quiet time.Duration, unjudged []workload.Unjudged, longer *Baseline) (*Baseline, error) {
	base := &Baseline{
		Locks: map[string]bool{}, Roots: map[string]bool{}, Uncounted: map[string]bool{}, Broken: map[string]bool{}, Deletions: map[string]int{},
		Managers: map[string]bool{}, Habits: map[observe.Habit]bool{}, Watched: a.Watches,
	}
	if len(a.Steps) != len(b.Steps) {
		return nil, errors.New("two undisturbed runs differ")
	}
	for _, line := range broken {
		base.Broken[line] = true
	}
	for key := range observe.LockKeys(a.Requests, nil) {
		base.Elects = true
		base.Locks[key] = true
	}
	for _, o := range []*observe.Record{a, b} {
		for _, manager := range o.Managers() {
			base.Managers[manager] = true
		}
		for key := range observe.LockKeys(o.Requests, o.Versions) {
			base.Locks[key] = true
		}
		for i := range o.Requests {
			r := &o.Requests[i]
			base.MakesPods = base.MakesPods || r.Verb == "create" && r.Resource == "pods" && r.Succeeded()
		}
	}
	base.AtStart = slices.DeleteFunc(slices.Clone(a.Steps[0].Watches), func(resource string) bool { return !slices.Contains(b.Steps[0].Watches, resource) })
	stable := map[string]bool{}
	inB := b.Beginnings()
	for key, step := range a.Beginnings() {
		if inStep, is := inB[key]; is && inStep == step && (longer == nil || longer.Names.Stable[key]) {
			stable[key] = true
		}
	}
	base.Names = observe.Names{Stable: stable, Unjudged: unjudged}
	mask := state.NewMask()
	if longer != nil {
		for i := range longer.Steps {
			mask.Add(longer.Steps[i].Mask.All()...)
		}
		maps.Copy(base.Locks, longer.Locks)
		maps.Copy(base.Broken, longer.Broken)
		maps.Copy(base.Uncounted, longer.Uncounted)
		maps.Copy(base.Habits, longer.Habits)
		maps.Copy(base.Managers, longer.Managers)
	}
	base.learnHabits(mask, a, b)
	for i := range a.Steps {
		s := base.step(a, b, i)
		s.Mask.Add(mask.All()...)
		gap := max(a.Steps[i].Gap, b.Steps[i].Gap)
		s.Quiet = min(max(gap+gap/2+500*time.Millisecond, ShortQuiet), quiet)
		base.Quiet = max(base.Quiet, s.Quiet)
		base.Steps = append(base.Steps, s)
	}
	base.Counts = [2]Counts{CountOf(base.Names, a.Versions, base.Locks, base.MakesPods, false), CountOf(base.Names, b.Versions, base.Locks, base.MakesPods, false)}
	for _, pair := range [][2]map[string]int{{base.Counts[0].Created, base.Counts[1].Created}, {base.Counts[0].Deleted, base.Counts[1].Deleted}} {
		for key := range unite(pair[0], pair[1]) {
			if pair[0][key] != pair[1][key] {
				base.Uncounted[key] = true
			}
		}
	}
	base.findRoots(a)
	base.findEdits(a)
	base.findListed(a)
	base.findDeletions(a)
	return base, nil
}

// learnHabits takes over the habits of runs, and masks the fields that change with them.
func (b *Baseline) learnHabits(mask *state.Mask, runs ...*observe.Record) {
	for _, o := range runs {
		for i := range o.Habits {
			b.Habits[o.Habits[i].Habit] = true
			o.Habits[i].Mask(b.Names, mask)
		}
	}
}

// differsUndisturbed is why something is masked.
const differsUndisturbed = "differs between undisturbed runs"

// step compares a step of the two runs.
func (b *Baseline) step(one, two *observe.Record, i int) BaseStep {
	x, y := one.Steps[i], two.Steps[i]
	s := BaseStep{
		State: b.Names.State(x.Objects, b.Locks), Mask: state.NewMask(), Took: max(x.Took, y.Took), Reads: max(x.Reads, y.Reads), Idle: max(x.Idle, y.Idle), Waits: x.Waits, Events: map[string]int{},
	}
	s.Mask.Learn(state.Compare(s.State, b.Names.State(y.Objects, b.Locks), nil, state.Rules{}), differsUndisturbed)
	if i > 0 {
		// A field that differs once may be equal by chance the next time.
		s.Mask.Add(fieldsOf(b.Steps[i-1].Mask)...)
	}
	s.Writes = one.WritesIn(i, b.Locks)
	s.ReadCalls = one.ReadsIn(i, b.Locks, b.Names.Stable)
	s.Last, s.Lasts = lastOfBoth(s.Writes, two.WritesIn(i, b.Locks), b.Names.Stable)
	for j := range one.Versions {
		if v := &one.Versions[j]; !v.Initial && one.IsIn(i, v.Time) && slices.Contains(b.Watched, v.Resource) {
			s.Events[v.Resource]++
		}
	}
	return s
}

// lastOfBoth returns the last kind of write that both lists have, and how many
// of that kind both have.
func lastOfBoth(one, two []observe.Request, stable map[string]bool) (observe.Call, int) {
	counts := [2]map[observe.Call]int{{}, {}}
	for i, writes := range [][]observe.Request{one, two} {
		for j := range writes {
			counts[i][observe.CallOf(&writes[j], stable)]++
		}
	}
	for i := range slices.Backward(one) {
		call := observe.CallOf(&one[i], stable)
		if n := min(counts[0][call], counts[1][call]); n > 0 {
			return call, n
		}
	}
	return observe.Call{}, 0
}

// findRoots finds the objects that users made, of resources that the operator watches.
func (b *Baseline) findRoots(o *observe.Record) {
	made := map[string]bool{}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.Verb == "create" && r.Succeeded() {
			made[observe.NameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		if key := v.Key(); v.Type == watch.Added && !v.Initial && slices.Contains(b.Watched, v.Resource) && !made[key] && len(v.Object.GetOwnerReferences()) == 0 &&
			v.Object.GetGenerateName() == "" && !observe.LeftOut(v, b.Locks) && v.Resource != "nodes" && v.Resource != "namespaces" {
			b.Roots[key] = true
		}
	}
}

// findEdits finds the steps in which users change the roots, or delete them.
func (b *Baseline) findEdits(o *observe.Record) {
	for step := range b.Steps {
		b.Steps[step].Edited = map[string]bool{}
		for i := range o.Versions {
			if v := &o.Versions[i]; !v.Initial && b.Roots[v.Key()] && o.IsIn(step, v.Time) {
				for _, path := range v.Edits() {
					b.Steps[step].Edited[v.Key()+" "+path] = true
				}
				b.Steps[step].Dying = b.Steps[step].Dying || v.Type == watch.Modified && v.Object.GetDeletionTimestamp() != nil
			}
		}
	}
}

// findListed finds the resources whose first list an API server may answer from a cache
// that is behind. A streaming list is always current.
func (b *Baseline) findListed(o *observe.Record) {
	streamed := map[string]bool{}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.Verb == "watchlist" && r.Status == 200 {
			streamed[r.Resource] = true
		}
	}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.Verb == "list" && r.ResourceVersion == "0" && !streamed[r.Resource] && slices.Contains(b.Watched, r.Resource) && !slices.Contains(b.Listed, r.Resource) {
			b.Listed = append(b.Listed, r.Resource)
		}
	}
	slices.Sort(b.Listed)
}

// findDeletions finds when objects were being deleted that the operator watches.
func (b *Baseline) findDeletions(o *observe.Record) {
	for i := range o.Versions {
		v := &o.Versions[i]
		if v.Object.GetDeletionTimestamp() == nil && v.Type != watch.Deleted || !slices.Contains(b.Listed, v.Resource) || !b.Names.Stable[v.Key()] || v.Resource == "pods" {
			continue
		}
		for step := range o.Steps {
			if _, known := b.Deletions[v.Key()]; !known && !v.Time.Before(o.Steps[step].Began) && (step+1 == len(o.Steps) || v.Time.Before(o.Steps[step+1].Began)) {
				b.Deletions[v.Key()] = step
			}
		}
	}
}
