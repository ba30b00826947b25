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

func (r *run) problem(oracle Oracle, lines ...string) {
	r.outcome.Problems = append(r.outcome.Problems, Problem{Oracle: oracle, Step: len(r.outcome.Steps), Lines: lines})
}

// judge notes the problems of a run that only its history shows.
func (r *run) judge() {
	last := max(len(r.outcome.Steps)-1, 0)
	for _, p := range brokenInvariants(r.Workload.Invariants, r.outcome.Versions, slices.Collect(maps.Keys(r.recorder.watched))...) {
		if r.baseline != nil && r.baseline.Broken[p.Lines[0]] {
			continue
		}
		p.Step = r.stepAt(p.At)
		r.outcome.Problems = append(r.outcome.Problems, p)
	}
	if lines := r.operator.output.failures(); len(lines) > 0 {
		r.outcome.Problems = append(r.outcome.Problems, Problem{Oracle: Failed, Step: last, Lines: lines})
	}
	if ends := r.operator.allLastWords(); len(ends) > 0 && !r.fault.effects().BreaksConnections && r.fault != nil {
		r.outcome.Problems = append(r.outcome.Problems, Problem{Oracle: Failed, Step: last, Lines: []string{endedByItself + ends[0]}})
	}
	if r.baseline == nil || len(r.outcome.Problems) > 0 || len(r.outcome.Steps) < len(r.baseline.Steps) {
		return
	}
	counts := countOf(r.baseline.names, r.outcome.Versions, r.baseline.Locks, r.baseline.MakesPods, r.fault.effects().HidesStates)
	if r.fault.effects().OtherClientWrites && handedOn(r.recorder.objects(), r.touched) {
		counts = counts.withoutTemplates()
	}
	if lines := r.baseline.otherCounts(counts, r.fault.effects().HidesStates); len(lines) > 0 {
		r.outcome.Problems = append(r.outcome.Problems, Problem{Oracle: OtherCounts, Step: last, Lines: lines})
	}
	if lines := refusedFast(r.fault.knowable(r.outcome.Requests, r.outcome.Versions), r.baseline.Locks); len(lines) > 0 {
		r.outcome.Problems = append(r.outcome.Problems, Problem{Oracle: NotAtRest, Step: last, Lines: lines})
	}
	now := r.outcome.Steps[last]
	for _, of := range []struct {
		what        string
		now, before int
	}{
		{"reads", now.Reads, r.baseline.Steps[last].Reads},
		{"writes that change nothing", now.Idle, r.baseline.Steps[last].Idle},
	} {
		if of.now > of.before+int(fast*r.baseline.Quiet.Seconds()) {
			r.outcome.Problems = append(r.outcome.Problems, Problem{Oracle: NotAtRest, Step: last, Lines: []string{
				fmt.Sprintf("%d %s in %s at rest, and %d undisturbed", of.now, of.what, r.baseline.Quiet, of.before),
			}})
		}
	}
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

// stepAt returns the step of a moment.
func (r *run) stepAt(at time.Time) int {
	step := 0
	for i := range r.outcome.Steps {
		if !r.outcome.Steps[i].Began.After(at) {
			step = i
		}
	}
	if len(r.outcome.Steps) <= len(r.Workload.Steps) && r.stepBegan.Before(at) {
		step = len(r.outcome.Steps)
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
