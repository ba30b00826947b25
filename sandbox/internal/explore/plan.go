// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Baseline is what was learnt from undisturbed runs.
type Baseline struct {
	Steps []BaseStep
	// Locks are the objects by which the operator elects its leader, Roots those that it
	// watches and that users made.
	Locks, Roots map[string]bool
	// Watched are the resources that the operator watches; Listed those of them whose
	// first list may be stale: as of resourceVersion 0, which any API server may answer
	// from its cache.
	Watched []string
	Listed  []string
	// AtStart are those that it watches as soon as it has started.
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

	names anonymizer
	// deletions are the keys of objects that were being deleted, with the step.
	deletions map[string]int
}

// BaseStep is what a step comes to undisturbed.
type BaseStep struct {
	State State
	Mask  *Mask
	Took  time.Duration
	Reads int
	// Writes are those of the operator in this step.
	Writes []Request
	// Events counts the versions of each resource that the operator watches.
	Events map[string]int
}

// learnFrom makes a baseline of two undisturbed runs.
func learnFrom(a, b *Outcome, quiet time.Duration) (*Baseline, error) {
	base := &Baseline{
		Locks: map[string]bool{}, Roots: map[string]bool{}, Uncounted: map[string]bool{}, Broken: map[string]bool{}, deletions: map[string]int{},
		Watched: a.Watches,
	}
	if len(a.Steps) != len(b.Steps) {
		return nil, errors.New("two undisturbed runs differ")
	}
	for _, o := range []*Outcome{a, b} {
		for key := range lockKeys(o.Requests, o.Versions) {
			base.Locks[key] = true
		}
		for _, p := range o.Problems {
			base.Broken[p.Lines[0]] = true
		}
		for i := range o.Requests {
			r := &o.Requests[i]
			base.MakesPods = base.MakesPods || r.Verb == "create" && r.Resource == "pods" && r.succeeded()
		}
	}
	base.AtStart = slices.DeleteFunc(slices.Clone(a.Steps[0].Watches), func(resource string) bool { return !slices.Contains(b.Steps[0].Watches, resource) })
	inB := map[string]bool{}
	for i := range b.Versions {
		inB[b.Versions[i].key()] = true
	}
	stable := map[string]bool{}
	for i := range a.Versions {
		if key := a.Versions[i].key(); inB[key] {
			stable[key] = true
		}
	}
	base.names = anonymizer{stable: stable}
	var gap time.Duration
	for i := range a.Steps {
		gap = max(gap, a.Steps[i].Gap, b.Steps[i].Gap)
		base.Steps = append(base.Steps, base.step(a, b, i))
	}
	base.Quiet = min(max(gap+gap/2+500*time.Millisecond, time.Second), quiet)
	base.Counts = [2]Counts{countOf(base.names, a.Versions, base.Locks, base.MakesPods), countOf(base.names, b.Versions, base.Locks, base.MakesPods)}
	for _, pair := range [][2]map[string]int{{base.Counts[0].Created, base.Counts[1].Created}, {base.Counts[0].Deleted, base.Counts[1].Deleted}} {
		for key := range unite(pair[0], pair[1]) {
			if pair[0][key] != pair[1][key] {
				base.Uncounted[key] = true
			}
		}
	}
	base.findRoots(a)
	base.findListed(a)
	base.findDeletions(a)
	return base, nil
}

// step compares a step of the two runs.
func (b *Baseline) step(one, two *Outcome, i int) BaseStep {
	x, y := one.Steps[i], two.Steps[i]
	s := BaseStep{
		State: b.names.state(x.Objects, b.Locks), Mask: newMask(), Took: max(x.Took, y.Took), Reads: max(x.Reads, y.Reads), Events: map[string]int{},
	}
	s.Mask.learn(s.State, b.names.state(y.Objects, b.Locks))
	if i > 0 {
		// What differs once may be equal by chance the next time.
		for path := range b.Steps[i-1].Mask.Paths {
			s.Mask.Paths[path] = true
		}
	}
	end := one.Began.Add(one.Took)
	if i+1 < len(one.Steps) {
		end = one.Steps[i+1].Began
	}
	for _, r := range one.Requests {
		if !r.Time.Before(x.Began) && r.Time.Before(end) && r.writes(b.Locks) && r.Resource != "" {
			s.Writes = append(s.Writes, r)
		}
	}
	for j := range one.Versions {
		if v := &one.Versions[j]; !v.Initial && !v.Time.Before(x.Began) && v.Time.Before(end) && slices.Contains(b.Watched, v.Resource) {
			s.Events[v.Resource]++
		}
	}
	return s
}

// findRoots finds the objects that users made, of resources that the operator watches.
func (b *Baseline) findRoots(o *Outcome) {
	made := map[string]bool{}
	for i := range o.Requests {
		if r := &o.Requests[i]; r.Verb == "create" && r.succeeded() {
			made[nameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	for i := range o.Versions {
		v := &o.Versions[i]
		if key := v.key(); v.Type == watch.Added && !v.Initial && slices.Contains(b.Watched, v.Resource) && !made[key] && len(v.Object.GetOwnerReferences()) == 0 &&
			v.Object.GetGenerateName() == "" && !leftOut(v, b.Locks) && v.Resource != "nodes" && v.Resource != "namespaces" {
			b.Roots[key] = true
		}
	}
}

// findListed finds the resources whose first list an API server may answer from a cache
// that is behind. A streaming list is always current.
func (b *Baseline) findListed(o *Outcome) {
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
func (b *Baseline) findDeletions(o *Outcome) {
	for i := range o.Versions {
		v := &o.Versions[i]
		if v.Object.GetDeletionTimestamp() == nil && v.Type != watch.Deleted || !slices.Contains(b.Listed, v.Resource) || !b.names.stable[v.key()] || v.Resource == "pods" {
			continue
		}
		for step := range o.Steps {
			if _, known := b.deletions[v.key()]; !known && !v.Time.Before(o.Steps[step].Began) && (step+1 == len(o.Steps) || v.Time.Before(o.Steps[step+1].Began)) {
				b.deletions[v.key()] = step
			}
		}
	}
}

// planned is a fault with how promising it is.
type planned struct {
	Fault
	score int
}

// plan returns the faults that can be played, most promising first.
func plan(b *Baseline) []Fault {
	var all []planned
	add := func(score int, f Fault) {
		if f.Until < f.Step {
			f.Until = f.Step
		}
		all = append(all, planned{f, score})
	}
	last := len(b.Steps) - 1
	for step := range b.Steps {
		planWrites(b, step, add)
		planEvents(b, step, last, add)
		if step > 0 {
			add(60, Fault{Kind: Restart, Step: step})
			planStale(b, step, add)
		}
	}
	slices.SortStableFunc(all, func(x, y planned) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(hash(x.name()), hash(y.name())))
	})
	faults := make([]Fault, len(all))
	for i := range all {
		faults[i] = all[i].Fault
	}
	return faults
}

// planWrites plans the faults of the writes of a step. A crash between a write and those
// that follow it is what most operators were not tried with.
func planWrites(b *Baseline, step int, add func(int, Fault)) {
	seen := map[Call]int{}
	earlier := map[Call]bool{}
	for i := range step {
		for j := range b.Steps[i].Writes {
			earlier[callOf(&b.Steps[i].Writes[j], b.names.stable)] = true
		}
	}
	writes := b.Steps[step].Writes
	deleted := false
	for i := range writes {
		call := callOf(&writes[i], b.names.stable)
		seen[call]++
		value := 50
		if i+1 < len(writes) {
			value += 15
		}
		switch {
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
		for kind, less := range map[Kind]int{CrashAfter: 0, CrashBefore: 5, LoseAnswer: 20, ServerError: 22, Conflict: 25, Throttle: 40, Refuse: 42, Late: 45} {
			if kind == Conflict && call.Verb != "update" && call.Verb != "patch" {
				continue // There is nothing that another client has changed.
			}
			add(value-less, Fault{Kind: kind, Step: step, Call: &call, Nth: seen[call]})
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
		for until := step + 1; until <= last; until++ {
			add(49+made-(until-step), Fault{Kind: Freeze, Step: step, Until: until, Resource: resource})
			add(48+made-(until-step), Fault{Kind: DropEvents, Step: step, Until: until, Resource: resource})
		}
		add(20+made, Fault{Kind: FreezeLong, Step: step, Resource: resource})
		add(18+made, Fault{Kind: ExpireWatch, Step: step, Resource: resource})
		add(18, Fault{Kind: LateEvent, Step: step, Resource: resource})
		add(10, Fault{Kind: DuplicateEvent, Step: step, Resource: resource})
	}
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
	for moment := 1; moment <= step; moment++ {
		add(55-(step-moment), Fault{Kind: StaleStart, Step: step, AsOf: fmt.Sprintf("step %d", moment)})
		for _, resource := range b.Listed {
			if b.Steps[step].Events[resource] > 0 {
				add(30, Fault{Kind: StaleStart, Step: step, AsOf: fmt.Sprintf("step %d", moment), Resource: resource})
			}
		}
	}
}
