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

// Baseline is the behavior of an operator in baseline runs, which have no fault.
type Baseline struct {
	Steps []BaseStep
	// Locks are the keys of the objects of leader election. Roots are the keys of objects that
	// users created and the operator watches, such as custom resources.
	Locks, Roots map[string]bool
	// Elects is set if the operator elects a leader by Leases, so that several processes may run at
	// once.
	Elects bool
	// Watched are the resources that the operator watches. Listed are the watched resources whose
	// first list may be stale: a list at resourceVersion 0, which an API server may answer from its
	// cache.
	Watched []string
	Listed  []string
	// AtStart are the resources that the operator watches right after its start.
	AtStart []string
	// MakesPods is set if the operator creates pods itself.
	MakesPods bool
	Counts    [2]Counts
	// Uncounted are the keys whose numbers of creations or deletions differ between the two runs.
	Uncounted map[string]bool
	// Broken are invariants that are violated in baseline runs, too.
	Broken map[string]bool
	// Quiet is the longest quiet time of all steps.
	Quiet time.Duration
	// Managers are the field managers of all objects.
	Managers map[string]bool
	// Habits are changes and writes that recur in an otherwise quiet cluster, and do not count as
	// activity.
	Habits map[observe.Habit]bool

	Names observe.Names
	// Deletions are the keys of objects that were being deleted, each with the step.
	Deletions map[string]int
}

// ShortQuiet is the shortest quiet time.
const ShortQuiet = time.Second

// BaseStep is the behavior of an operator in a step, and the state at its end.
type BaseStep struct {
	State observe.State
	Mask  *state.Mask
	Took  time.Duration
	// Reads is the number of reads in the quiet time, and Idle the number of writes, which had no
	// effect.
	Reads, Idle int
	// Quiet is the time without a change after which the step is over.
	Quiet time.Duration
	// Writes are the writes of the operator in this step.
	Writes []observe.Request
	// ReadCalls are the kinds of reads of the operator in this step, other than watches.
	ReadCalls []observe.Call
	// Last is the last kind of write that both runs have in this step, and Lasts the number of such
	// writes in each run, after which the step may be over. 0: there is no such write.
	Last  observe.Call
	Lasts int
	// Edited are the fields of Roots that are changed in this step, as "KEY PATH".
	Edited map[string]bool
	// Dying is set if the deletion of a root begins in this step, and waits for finalizers.
	Dying bool
	// Waits is set if users wait for a condition at the end of the step.
	Waits bool
	// Events is the number of versions of each watched resource.
	Events map[string]int
}

// Learn returns the baseline of two runs without a fault. To shrink a workload, both may be the
// same run, and longer is the baseline of the longer workload: it then supplies the differences
// between runs. broken are the first lines of problems in the runs, and quiet is the upper
// limit of the quiet time.
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

// LockKeys returns the keys of the objects of leader election; none in a baseline run, in which b is
// nil.
func (b *Baseline) LockKeys() map[string]bool {
	if b == nil {
		return nil
	}
	return b.Locks
}

// learnHabits adopts the habits of runs, and masks their fields.
func (b *Baseline) learnHabits(mask *state.Mask, runs ...*observe.Record) {
	for _, o := range runs {
		for i := range o.Habits {
			b.Habits[o.Habits[i].Habit] = true
			o.Habits[i].Mask(b.Names, mask)
		}
	}
}

// differsUndisturbed is the reason that users see for a masked field.
const differsUndisturbed = "differs between undisturbed runs"

// step compares step i of the two runs, and masks the fields that differ.
func (b *Baseline) step(one, two *observe.Record, i int) BaseStep {
	x, y := one.Steps[i], two.Steps[i]
	s := BaseStep{
		State: b.Names.State(x.Objects, b.Locks), Mask: state.NewMask(), Took: max(x.Took, y.Took), Reads: max(x.Reads, y.Reads), Idle: max(x.Idle, y.Idle), Waits: x.Waits, Events: map[string]int{},
	}
	s.Mask.Learn(state.Compare(s.State, b.Names.State(y.Objects, b.Locks), nil, state.Rules{}), differsUndisturbed)
	if i > 0 {
		// A field that differs in a step may be equal by chance in the next.
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

// lastOfBoth returns the last kind of write that both lists have, and the smaller number of
// such writes.
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

// findRoots finds the objects that users created, of watched resources.
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

// findEdits finds the steps in which users change or delete the roots.
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

// findListed finds the resources whose first list an API server may answer from an outdated
// cache. A streaming list is always current.
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

// findDeletions finds the steps in which watched objects were being deleted.
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
