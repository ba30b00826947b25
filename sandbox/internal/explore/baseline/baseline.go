// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Baseline describes how an operator behaves in baseline runs, which are runs of a workload without
// a fault.
type Baseline struct {
	Steps []BaseStep
	// Locks is the set of keys, as RESOURCE NAMESPACE/NAME, of objects used for leader election.
	// Roots is the set of keys of objects, such as custom resources, that users create and the
	// operator watches.
	Locks, Roots map[string]bool
	// Elects is set if the operator elects a leader with Leases. Only then may several processes of
	// the operator run at the same time.
	Elects bool
	// Programs is the set of names of applications that are programs.
	Programs map[string]bool
	// Watched lists the resources that the operator watches. Listed lists the watched resources
	// whose initial list may be stale: the operator lists them at resourceVersion 0, which an API
	// server may serve from its cache.
	Watched []string
	Listed  []string
	// AtStart lists the resources that the operator watches right after any of its starts.
	AtStart []string
	// MakesPods is set if the operator creates pods itself.
	MakesPods bool
	Counts    [2]Counts
	// Uncounted is the set of object keys for which the number of created or deleted objects
	// differs between runs without a fault. It may grow while runs are judged, guarded by mu.
	Uncounted map[string]bool
	mu        sync.RWMutex
	// Broken identifies the problems found in baseline runs, such as violated invariants. It is the
	// set of the first lines of their descriptions, by [General].
	Broken map[string]bool
	// Quiet is the maximum of BaseStep.Quiet over all steps: the longest time without changes after
	// which a step ends.
	Quiet time.Duration
	// Managers is the set of field managers of all objects in the baseline runs.
	Managers map[string]bool
	// Habits is the set of changes and rejected writes that recur in an otherwise quiet cluster.
	// The cluster counts as quiet despite them.
	Habits map[observe.Habit]bool

	Names observe.Names
	// Deletions maps the keys of deleted objects to the number of the step in which their deletion
	// began.
	Deletions map[string]int
}

// ShortQuiet is the minimum time without changes after which a step ends, in runs that are compared
// with a baseline.
const ShortQuiet = time.Second

// BaseStep describes an operator's behavior in a step of the baseline runs, and the cluster state
// at the end of the step.
type BaseStep struct {
	State observe.State
	Mask  *state.Mask
	Took  time.Duration
	// Reads counts the operator's reads after the last change in the step. Idle counts the
	// operator's writes after that change, none of which had an effect.
	Reads, Idle int
	// Quiet is the time without changes after which the step ends.
	Quiet time.Duration
	// Writes lists the operator's writes in the step.
	Writes []observe.Request
	// ReadCalls lists the kinds of the operator's reads in the step, except for watches.
	ReadCalls []observe.Call
	// Last is the last kind of write (verb and object) that the operator sends in this step in both
	// baseline runs. Lasts is the number of writes of this kind after which the step may end. Lasts
	// is 0 if the two runs have no kind of write in common.
	Last  observe.Call
	Lasts int
	// Asks counts, for each kind, the requests to applications that the operator sends in this step in
	// both baseline runs.
	Asks []observe.Asks
	// Edited is the set of fields, as "KEY PATH", that change in the step in objects that users
	// created (see Baseline.Roots).
	Edited map[string]bool
	// Dying is set if an object that users created is being deleted in this step, and finalizers
	// delay its removal.
	Dying bool
	// Waits is set if users wait for a condition at the end of the step.
	Waits bool
	// Events maps each resource that the operator watches to its number of watch events in the
	// step.
	Events map[string]int
}

// Learn returns the baseline learned from the runs `a` and `b`, which have no fault. For a
// shortened workload, `a` and `b` may be the same run. In this case, `longer` is the baseline of
// the complete workload, which supplies the fields that differ between runs; otherwise it is nil.
// `broken` lists the first line of each problem in the runs, and `quiet` limits the quiet time of a
// step. `unjudged` lists the fields that the workload excludes from comparisons.
func Learn(a, b *observe.Record, broken []string, quiet time.Duration, unjudged []workload.Unjudged, longer *Baseline) (*Baseline, error) {
	base := &Baseline{
		Locks: map[string]bool{}, Roots: map[string]bool{}, Uncounted: map[string]bool{}, Broken: map[string]bool{}, Deletions: map[string]int{},
		Managers: map[string]bool{}, Habits: map[observe.Habit]bool{}, Watched: a.Watches,
	}
	if len(a.Steps) != len(b.Steps) {
		return nil, errors.New("two undisturbed runs differ")
	}
	for _, line := range broken {
		base.Broken[observe.General(line)] = true
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
	base.AtStart = atStart(longer, a, b)
	stable := map[string]bool{}
	inB := b.Beginnings()
	for key, step := range a.Beginnings() {
		if inStep, is := inB[key]; is && inStep == step && (longer == nil || longer.Names.Stable[key]) {
			stable[key] = true
		}
	}
	paths := b.Paths()
	for path := range a.Paths() {
		if paths[path] && (longer == nil || longer.Names.Stable[path]) {
			stable[path] = true
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
	base.LearnCounts(base.Counts[1])
	base.findRoots(a)
	base.findEdits(a)
	base.findListed(a)
	base.findDeletions(a)
	return base, nil
}

// atStart returns the resources that the operator watched after its start in all given runs, and
// after a restart if a run ended with one. Of a shortened workload, it returns only resources in the
// baseline of the complete workload, `longer`.
func atStart(longer *Baseline, runs ...*observe.Record) []string {
	watched := sets.New(runs[0].Steps[0].Watches...)
	keep := func(resources []string) { watched = watched.Intersection(sets.New(resources...)) }
	for _, o := range runs {
		keep(o.Steps[0].Watches)
		if o.Restarted != nil {
			keep(o.Restarted)
		}
	}
	if longer != nil {
		keep(longer.AtStart)
	}
	return sets.List(watched)
}

// LockKeys returns the set of keys of objects used for leader election. It returns nil if `b` is
// nil, as in a baseline run, in which these objects are not known yet.
func (b *Baseline) LockKeys() map[string]bool {
	if b == nil {
		return nil
	}
	return b.Locks
}

// learnHabits adds the habits of the given runs to the baseline. Habits are changes that recur in
// an otherwise quiet cluster. The changed fields are added to the mask, so that they are not
// compared.
func (b *Baseline) learnHabits(mask *state.Mask, runs ...*observe.Record) {
	for _, o := range runs {
		for i := range o.Habits {
			b.Habits[o.Habits[i].Habit] = true
			o.Habits[i].Mask(b.Names, mask)
		}
	}
}

// DiffersUndisturbed is the reason, as shown to users, for not comparing a field that differs
// between runs without a fault.
const DiffersUndisturbed = "differs between undisturbed runs"

// step returns the baseline of step i of the runs `one` and `two`, with a mask of the fields that
// differ between these runs.
func (b *Baseline) step(one, two *observe.Record, i int) BaseStep {
	x, y := one.Steps[i], two.Steps[i]
	s := BaseStep{
		State: b.Names.State(x.Objects, b.Locks), Mask: state.NewMask(), Took: max(x.Took, y.Took), Reads: max(x.Reads, y.Reads), Idle: max(x.Idle, y.Idle), Waits: x.Waits, Events: map[string]int{},
	}
	s.Mask.Learn(state.Compare(s.State, b.Names.State(y.Objects, b.Locks), nil, state.Rules{}), DiffersUndisturbed)
	if i > 0 {
		// Also mask the fields that differ between the two runs in the previous step. If such a
		// field is equal in this step, this may be by chance.
		s.Mask.Add(fieldsOf(b.Steps[i-1].Mask)...)
	}
	s.Writes = one.WritesIn(i, b.Locks)
	s.ReadCalls = one.ReadsIn(i, b.Locks, b.Names.Stable)
	s.Last, s.Lasts = lastOfBoth(s.Writes, two.WritesIn(i, b.Locks), b.Names.Stable)
	s.Asks = asksOfBoth(one.AsksIn(i, b.Names.Stable), two.AsksIn(i, b.Names.Stable))
	for j := range one.Versions {
		if v := &one.Versions[j]; !v.Initial && one.IsIn(i, v.Time) && slices.Contains(b.Watched, v.Resource) {
			s.Events[v.Resource]++
		}
	}
	return s
}

// lastOfBoth returns the last kind of write (verb and object) in `one` that also occurs in `two`.
// It also returns how often this kind occurs in each list, or the smaller number if the lists
// differ. `stable` is the set of object keys that are the same in each run.
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

// asksOfBoth returns the kinds of requests to applications that are in both lists, each with the smaller
// number.
func asksOfBoth(one, two []observe.Asks) []observe.Asks {
	var both []observe.Asks
	for _, a := range one {
		for _, b := range two {
			if a.Call == b.Call {
				outdated := sets.List(sets.New(a.Outdated...).Intersection(sets.New(b.Outdated...)))
				both = append(both, observe.Asks{Call: a.Call, Times: min(a.Times, b.Times), Outdated: outdated})
			}
		}
	}
	return both
}

// findRoots adds to b.Roots the keys of the objects that users created in resources that the
// operator watches.
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

// findEdits records, for each step, which fields of the objects in b.Roots change, and whether a
// deletion of such an object waits for finalizers.
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

// findListed adds to b.Listed the resources whose initial list an API server may serve from an
// outdated cache. It skips resources with a streaming list, which is always current.
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

// findDeletions records the step in which each object's deletion begins. A fault can later restart
// the operator with outdated lists that still contain the deleted object. Only lists that an API
// server serves from its watch cache can be outdated, so other resources are skipped. Pods are
// skipped, too: they are routinely deleted and replaced, for example in the rollout of a
// StatefulSet, and each recorded deletion adds faults to the plan.
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
