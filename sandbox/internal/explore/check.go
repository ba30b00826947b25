// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Oracle is what notices that something is wrong.
type Oracle string

// Oracles.
const (
	// OtherState: the objects at rest are not those of the undisturbed runs.
	OtherState Oracle = "other state"
	// OtherEnds: undisturbed runs come to one of several ends.
	OtherEnds Oracle = "different ends"
	// NotReached: what a step waits for does not come.
	NotReached Oracle = "not reached"
	// NotAtRest: it goes on writing or reading.
	NotAtRest Oracle = "not at rest"
	// OtherCounts: more or fewer objects were created or deleted than undisturbed.
	OtherCounts Oracle = "other counts"
	// Broken: an invariant did not hold at some moment.
	Broken Oracle = "invariant broken"
	// Failed: the operator panicked, ended, or wrote a line that it must not.
	Failed Oracle = "operator failed"
)

// Problem is what is wrong with a run.
type Problem struct {
	Oracle Oracle `json:"oracle"`
	// Step is where it was noticed.
	Step  int      `json:"step"`
	Lines []string `json:"lines"`
	// At is when, for what happens at a moment.
	At time.Time `json:"-"`
}

// certain reports whether one run is enough to be sure: what has happened, has. A process may
// have ended for want of something that the machine does not have.
func (p *Problem) certain() bool {
	return p.Oracle == Broken || p.Oracle == OtherEnds || p.Oracle == Failed && !strings.HasPrefix(p.Lines[0], endedByItself)
}

// endedByItself begins the line of a process that has.
const endedByItself = "the operator ended by itself: "

// judge judges a run by the undisturbed runs, and by rules that hold for each cluster.
type judge struct {
	workload *Workload
	// base and fault are nil for an undisturbed run.
	base     *Baseline
	fault    *Fault
	recorder *recorder
	rival    *rival
}

// differences are those from what the step comes to undisturbed.
func (j *judge) differences(base *BaseStep) []state.Difference {
	want, got := j.fault.comparable(base.State, j.base.names.state(j.recorder.objects(), j.base.Locks))
	if j.fault.effects().OtherClientWrites && handedOn(j.recorder.objects(), j.rival.touched) {
		want, got = withoutRevisions(want), withoutRevisions(got)
	}
	return state.Compare(want, got, base.Mask, state.Rules{})
}

// after notes the problems of a run that only its history shows: failures and ends of the operator
// among them.
func (j *judge) after(o *Outcome, failures, ends []string) {
	last := max(len(o.Steps)-1, 0)
	for _, p := range brokenInvariants(j.workload.Invariants, o.Versions, slices.Collect(maps.Keys(j.recorder.watched))...) {
		if j.base != nil && j.base.Broken[p.Lines[0]] {
			continue
		}
		p.Step = o.stepAt(p.At, len(j.workload.Steps))
		o.Problems = append(o.Problems, p)
	}
	if len(failures) > 0 {
		o.Problems = append(o.Problems, Problem{Oracle: Failed, Step: last, Lines: failures})
	}
	if len(ends) > 0 && !j.fault.effects().BreaksConnections && j.fault != nil {
		o.Problems = append(o.Problems, Problem{Oracle: Failed, Step: last, Lines: []string{endedByItself + ends[0]}})
	}
	if j.base == nil || len(o.Problems) > 0 || len(o.Steps) < len(j.base.Steps) {
		return
	}
	counts := countOf(j.base.names, o.Versions, j.base.Locks, j.base.MakesPods, j.fault.effects().HidesStates)
	if j.fault.effects().OtherClientWrites && handedOn(j.recorder.objects(), j.rival.touched) {
		counts = counts.withoutTemplates()
	}
	if lines := j.base.otherCounts(counts, j.fault.effects().HidesStates); len(lines) > 0 {
		o.Problems = append(o.Problems, Problem{Oracle: OtherCounts, Step: last, Lines: lines})
	}
	if lines := refusedFast(j.fault.knowable(o.Requests, o.Versions), j.base.Locks); len(lines) > 0 {
		o.Problems = append(o.Problems, Problem{Oracle: NotAtRest, Step: last, Lines: lines})
	}
	now := o.Steps[last]
	o.Problems = append(o.Problems, j.busy(&now, last)...)
}

// busy returns the problems of an operator that reads, or writes without a change, more often at rest
// than undisturbed.
func (j *judge) busy(now *StepOutcome, last int) []Problem {
	var problems []Problem
	for _, of := range []struct {
		what        string
		now, before int
	}{
		{"reads", now.Reads, j.base.Steps[last].Reads},
		{"writes that change nothing", now.Idle, j.base.Steps[last].Idle},
	} {
		if of.now > of.before+int(fast*j.base.Quiet.Seconds()) {
			problems = append(problems, Problem{Oracle: NotAtRest, Step: last, Lines: []string{
				fmt.Sprintf("%d %s in %s at rest, and %d undisturbed", of.now, of.what, j.base.Quiet, of.before),
			}})
		}
	}
	return problems
}

// fast is how many reads a second are a loop, whatever for.
const fast = 20

// knowable returns the requests without those for an object that is not there any more, if the
// operator cannot know that: each event of what is removed with the object has it try again.
func (f *Fault) knowable(requests []Request, versions []Version) []Request {
	if !f.effects().HidesStates {
		return requests
	}
	// ends and beginnings of each object of that name, in their order.
	seen := map[string][]*Version{}
	for i := range versions {
		if v := &versions[i]; v.Type == watch.Deleted || v.Type == watch.Added {
			seen[v.key()] = append(seen[v.key()], v)
		}
	}
	return slices.DeleteFunc(slices.Clone(requests), func(r Request) bool {
		gone := false
		for _, v := range seen[nameKey(r.Resource, r.Namespace, r.Name)] {
			if v.Time.Before(r.Time) {
				gone = v.Type == watch.Deleted // It may be made again later.
			}
		}
		return gone
	})
}

// stepAt returns the step of a moment, of a workload with that many steps. A step that is not over
// has no outcome.
func (o *Outcome) stepAt(at time.Time, steps int) int {
	step := 0
	for i := range o.Steps {
		if !o.Steps[i].Began.After(at) {
			step = i
		}
	}
	if len(o.Steps) <= steps && o.stepBegan.Before(at) {
		step = len(o.Steps)
	}
	return step
}

// derived are resources that are not counted: others make them, as often as it takes.
var derived = []string{"persistentvolumes", "controllerrevisions.apps", "endpointslices.discovery.k8s.io"}

// Counts are how many objects were created and deleted, by key.
type Counts struct{ Created, Deleted map[string]int }

// countOf counts. Pods count only if the operator itself makes them: how many others make
// depends on the moment. What an operator that does not know better makes for an owner that is
// gone does not count, if it is late: the garbage collector removes it.
func countOf(names anonymizer, versions []Version, locks map[string]bool, pods, late bool) Counts {
	c := Counts{Created: map[string]int{}, Deleted: map[string]int{}}
	gone, garbage := map[types.UID]bool{}, map[types.UID]bool{}
	for i := range versions {
		v := &versions[i]
		uid := v.Object.GetUID()
		switch owners := v.Object.GetOwnerReferences(); {
		case v.Type == watch.Deleted:
			gone[uid] = true
		case v.Type == watch.Added && late && len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return !gone[o.UID] && !garbage[o.UID] }):
			garbage[uid] = true
		}
		if v.Initial || garbage[uid] || leftOut(v, locks) || v.Resource == "pods" && !pods || slices.Contains(derived, v.Resource) {
			continue
		}
		switch v.Type {
		case watch.Added:
			c.Created[names.key(v)]++
		case watch.Deleted:
			c.Deleted[names.key(v)]++
		}
	}
	return c
}

// otherCounts compares counts with those of the undisturbed runs.
func (b *Baseline) otherCounts(now Counts, mayBeFewer bool) []string {
	var lines []string
	compare := func(what string, one, two, now map[string]int) {
		for _, key := range slices.Sorted(maps.Keys(unite(one, now))) {
			most, least := max(one[key], two[key]), min(one[key], two[key])
			switch {
			case b.Uncounted[key]:
			case now[key] > most:
				lines = append(lines, fmt.Sprintf("%s: %s %s, not %s", key, what, times(now[key]), times(most)))
			case now[key] < least && !mayBeFewer:
				lines = append(lines, fmt.Sprintf("%s: %s %s, not %s", key, what, times(now[key]), times(least)))
			}
		}
	}
	compare("created", b.Counts[0].Created, b.Counts[1].Created, now.Created)
	compare("deleted", b.Counts[0].Deleted, b.Counts[1].Deleted, now.Deleted)
	return lines
}

func unite(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// summary is a problem in one line.
func (p *Problem) summary() string {
	text := string(p.Oracle)
	if len(p.Lines) > 0 {
		text += ": " + oneLine(p.Lines[0])
	}
	if len(p.Lines) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(p.Lines)-1)
	}
	return strings.TrimSpace(text)
}
