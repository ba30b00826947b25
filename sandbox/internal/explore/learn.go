// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// learnBaseline plays the workload twice without a fault: side by side if there is more than
// one job, as faults are played then, but the second run always a step behind the first. What
// comes from the time of day, to the second, would otherwise be taken for what never differs. If
// what the operator wants differs, there is a third run. It returns an outcome with the problems
// of all of them, too.
func (e *Explorer) learnBaseline(ctx context.Context, jobs int, progress io.Writer) (*Baseline, *Outcome, error) {
	if err := e.Prepare(ctx, progress); err != nil {
		return nil, nil, err
	}
	if e.OneAtATime() {
		jobs = 1
	}
	fmt.Fprintln(progress, "Learning from two undisturbed runs.")
	runs := make([]*Outcome, 2)
	learning, side := errgroup.WithContext(ctx)
	learning.SetLimit(max(1, jobs))
	ahead := make(chan struct{}, len(e.Workload.Steps)+1)
	for i, in := range []setting{{over: ahead}, {after: ahead}} {
		learning.Go(func() (err error) {
			runs[i], err = e.play(side, fmt.Sprintf("learn-%d", i+1), nil, nil, in)
			return err
		})
	}
	if err := learning.Wait(); err != nil {
		return nil, nil, err
	}
	if asked := forbidden(runs[0].Requests); len(asked) > 0 {
		fmt.Fprintf(progress, "warning: the operator may not: %s\n", mayNot(asked))
	}
	base, err := learnFrom(runs[0], runs[1], e.Quiet, e.Workload.Unjudged, nil)
	if err != nil {
		return nil, nil, err
	}
	var ends []Problem
	if wanted := base.otherWants(runs[0], runs[1]); len(wanted) > 0 {
		fmt.Fprintf(progress, "They differ in what is wanted, such as %s: learning from a third one.\n", wanted[0].line())
		third, err := e.play(ctx, "learn-3", nil, nil, setting{})
		if err != nil {
			return nil, nil, err
		}
		if ends, err = base.learnMore(third, wanted); err != nil {
			return nil, nil, err
		}
		runs = slices.Concat(runs, []*Outcome{third})
	}
	together := withProblems(runs)
	together.Problems = append(together.Problems, ends...)
	for _, p := range together.Problems {
		base.Broken[p.Lines[0]] = true
	}
	return base, together, nil
}

// withProblems returns the first run that has a problem, with the problems of the others as well:
// what happens in one of several runs is as wrong as what happens in each.
func withProblems(runs []*Outcome) *Outcome {
	first := max(0, slices.IndexFunc(runs, func(o *Outcome) bool { return len(o.Problems) > 0 }))
	together := *runs[first]
	together.Problems = slices.Clone(together.Problems)
	for i, o := range runs {
		for _, p := range o.Problems {
			if i != first && !slices.ContainsFunc(together.Problems, p.same) {
				p.At = time.Time{} // It is a moment of another run.
				together.Problems = append(together.Problems, p)
			}
		}
	}
	return &together
}

// same reports whether two problems say the same.
func (p *Problem) same(other Problem) bool {
	return p.Oracle == other.Oracle && slices.Equal(p.Lines[:min(1, len(p.Lines))], other.Lines[:min(1, len(other.Lines))])
}

// foundUndisturbed returns what was found without a fault, with what was so before: nil if there
// is nothing new.
func (e *Explorer) foundUndisturbed(o *Outcome, b *Baseline, before []*Finding) *Finding {
	known := slices.IndexFunc(before, func(f *Finding) bool { return f.Fault == nil })
	if known < 0 {
		if len(o.Problems) == 0 {
			return nil
		}
		return e.newFinding(nil, o, b)
	}
	unknown := func(p Problem) bool { return !slices.ContainsFunc(before[known].Problems, p.same) }
	if !slices.ContainsFunc(o.Problems, unknown) {
		return nil
	}
	all := *o
	all.Problems = slices.Clone(o.Problems)
	for _, p := range before[known].Problems {
		if !slices.ContainsFunc(all.Problems, p.same) {
			all.Problems = append(all.Problems, p)
		}
	}
	return e.newFinding(nil, &all, b)
}

// want is a field of what is wanted that differs between undisturbed runs.
type want struct {
	step int
	state.Difference
}

func (w want) line() string {
	return fmt.Sprintf("%s: %s is %s in one undisturbed run, and %s in another", w.Object, w.Path, state.Shown(w.Want), state.Shown(w.Got))
}

// otherWants returns in which fields two undisturbed runs differ, other than in metadata and the
// status, of objects that the operator writes: each once.
func (b *Baseline) otherWants(one, two *Outcome) []want {
	var all []want
	for i := range b.Steps {
		got := b.names.state(two.Steps[i].Objects, b.Locks)
		for _, d := range state.Compare(b.Steps[i].State, got, nil, state.Rules{}) {
			known := func(w want) bool { return w.Object == d.Object && w.Path == d.Path }
			if d.Path == "" || state.Within("metadata", d.Path) || state.Within("status", d.Path) || slices.ContainsFunc(all, known) {
				continue
			}
			if one.wrote(d.Object) && two.wrote(d.Object) {
				all = append(all, want{i, d})
			}
		}
	}
	return all
}

// wrote reports whether the operator has written to an object, or to one of those of an entry of
// a [State].
func (o *Outcome) wrote(key string) bool {
	beginning, several := strings.CutSuffix(key, "*")
	return slices.ContainsFunc(o.Requests, func(r Request) bool {
		if !r.writes(nil) || !r.succeeded() || r.Verb == "delete" || strings.Contains(r.Resource, "/") {
			return false
		}
		written := nameKey(r.Resource, r.Namespace, r.Name)
		return written == key || several && (strings.HasPrefix(written, beginning) || r.Name == "" && strings.HasPrefix(beginning, written))
	})
}

// learnMore learns from a third undisturbed run, of what differs between the first two. A value
// that comes again is one of several ends, between which chance decides: that is a problem. What
// is another in each run is made to be so, as a password is.
func (b *Baseline) learnMore(third *Outcome, wants []want) ([]Problem, error) {
	if len(third.Steps) != len(b.Steps) {
		return nil, fmt.Errorf("the third undisturbed run has %d steps, not %d", len(third.Steps), len(b.Steps))
	}
	ends := map[int][]string{}
	for i := range b.Steps {
		b.learnHabits(b.Steps[i].Mask, third)
		got := b.names.state(third.Steps[i].Objects, b.Locks)
		for _, w := range wants {
			if w.step != i {
				continue
			}
			if value := state.Values(got[w.Object], w.Path); len(got[w.Object]) > 0 && (value == w.Want || value == w.Got) {
				ends[i] = append(ends[i], w.line())
			}
		}
		b.Steps[i].Mask.Learn(state.Compare(b.Steps[i].State, got, nil, state.Rules{}), differsUndisturbed)
	}
	for i := 1; i < len(b.Steps); i++ {
		b.Steps[i].Mask.Add(fieldsOf(b.Steps[i-1].Mask)...)
	}
	var problems []Problem
	for i := range b.Steps {
		if len(ends[i]) > 0 {
			problems = append(problems, Problem{Oracle: OtherEnds, Step: i, Lines: ends[i]})
		}
	}
	return problems, nil
}

// fieldsOf returns what a mask has of fields.
func fieldsOf(m *state.Mask) []state.Masked {
	return slices.DeleteFunc(m.All(), func(masked state.Masked) bool { return masked.Path == "" })
}

// masked returns what no run is judged by because it differs undisturbed.
func (b *Baseline) masked() []state.Masked {
	all := state.NewMask()
	for i := range b.Steps {
		all.Add(b.Steps[i].Mask.All()...)
	}
	return all.All()
}

// mostMasked bounds how much of what is masked is said while it plays.
const mostMasked = 10

// sayMasked says what is not judged.
func sayMasked(w io.Writer, all []state.Masked) {
	for i, masked := range all {
		if i == mostMasked {
			fmt.Fprintf(w, "… and %d more.\n", len(all)-i)
			return
		}
		fmt.Fprintf(w, "Not judged, as it %s: %s\n", cmp.Or(masked.Why, differsUndisturbed), masked)
	}
}

// describe says what was learnt.
func (b *Baseline) describe() string {
	writes, took := 0, time.Duration(0)
	for i := range b.Steps {
		writes += len(b.Steps[i].Writes)
		took += b.Steps[i].Took
	}
	return fmt.Sprintf("the operator writes %d times and watches %s; a run takes %s, and all is at rest when nothing happens for %s",
		writes, strings.Join(b.Watched, ", "), took.Round(time.Second), b.Quiet.Round(100*time.Millisecond))
}
