// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// want is a difference in desired state between baseline runs. Desired state is everything except
// for metadata and status.
type want struct {
	step int
	state.Difference
}

func (w want) Line() string {
	return fmt.Sprintf("%s: %s is %s in one undisturbed run, and %s in another", w.Object, w.Path, state.Shown(w.Want), state.Shown(w.Got))
}

// OtherWants returns the distinct desired-state fields that differ between two baseline runs, in
// objects that the operator has written in both runs.
func (b *Baseline) OtherWants(one, two *observe.Record) []want {
	var all []want
	for i := range b.Steps {
		got := b.Names.State(two.Steps[i].Objects, b.Locks)
		for _, d := range state.Compare(b.Steps[i].State, got, nil, state.Rules{}) {
			known := func(w want) bool { return w.Object == d.Object && w.Path == d.Path }
			if d.Path == "" || state.Within("metadata", d.Path) || state.Within("status", d.Path) || slices.ContainsFunc(all, known) {
				continue
			}
			if one.Wrote(d.Object) && two.Wrote(d.Object) {
				all = append(all, want{i, d})
			}
		}
	}
	return all
}

// OtherObjects compares the objects written by the operator at the end of each step in two baseline
// runs. It returns a line for each object key under which the runs have different numbers of
// objects, and for each field that exists in only one run. On a busy machine, such differences
// indicate that the cluster seemed quiet before the operator had finished.
func (b *Baseline) OtherObjects(one, two *observe.Record) []string {
	var lines []string
	for i := range b.Steps {
		got := b.Names.State(two.Steps[i].Objects, b.Locks)
		for _, d := range state.Compare(b.Steps[i].State, got, nil, state.Rules{}) {
			if (d.Path == "" || (d.Want == "") != (d.Got == "")) && (one.Touched(d.Object) || two.Touched(d.Object)) {
				lines = append(lines, d.String())
			}
		}
	}
	return lines
}

// LearnMore adds a third run to the baseline, and returns a line for each problem, by step number.
// `wants` lists the fields that differ between the first two runs. If the third run repeats one of
// the two values of such a field, the value depends on chance, which is a problem. A field with a
// third value, such as a password, differs on purpose.
func (b *Baseline) LearnMore(third *observe.Record, wants []want) (map[int][]string, error) {
	if len(third.Steps) != len(b.Steps) {
		return nil, fmt.Errorf("the third undisturbed run has %d steps, not %d", len(third.Steps), len(b.Steps))
	}
	ends := map[int][]string{}
	for i := range b.Steps {
		b.learnHabits(b.Steps[i].Mask, third)
		got := b.Names.State(third.Steps[i].Objects, b.Locks)
		for _, w := range wants {
			if w.step != i {
				continue
			}
			if value := state.Values(got[w.Object], w.Path); len(got[w.Object]) > 0 && (value == w.Want || value == w.Got) {
				ends[i] = append(ends[i], w.Line())
			}
		}
		b.Steps[i].Mask.Learn(state.Compare(b.Steps[i].State, got, nil, state.Rules{}), DiffersUndisturbed)
	}
	for i := 1; i < len(b.Steps); i++ {
		b.Steps[i].Mask.Add(fieldsOf(b.Steps[i-1].Mask)...)
	}
	return ends, nil
}

// fieldsOf returns the individual fields that a mask excludes from comparisons. It leaves out
// objects that the mask excludes entirely.
func fieldsOf(m *state.Mask) []state.Masked {
	return slices.DeleteFunc(m.All(), func(masked state.Masked) bool { return masked.Path == "" })
}

// Masked returns the fields of all steps that are not compared, because they differ between
// baseline runs.
func (b *Baseline) Masked() []state.Masked {
	all := state.NewMask()
	for i := range b.Steps {
		all.Add(b.Steps[i].Mask.All()...)
	}
	return all.All()
}

// mostMasked is the maximum number of fields that SayMasked prints.
const mostMasked = 10

// SayMasked prints the masked fields, to inform users that these fields are not compared. It prints
// at most mostMasked fields, and the number of the remaining fields.
func SayMasked(w io.Writer, all []state.Masked) {
	for i, masked := range all {
		if i == mostMasked {
			fmt.Fprintf(w, "… and %d more.\n", len(all)-i)
			return
		}
		fmt.Fprintf(w, "Not judged, as it %s: %s\n", cmp.Or(masked.Why, DiffersUndisturbed), masked)
	}
}

// Describe summarizes the baseline in a line.
func (b *Baseline) Describe() string {
	writes, took := 0, time.Duration(0)
	for i := range b.Steps {
		writes += len(b.Steps[i].Writes)
		took += b.Steps[i].Took
	}
	return fmt.Sprintf("the operator writes %d times and watches %s; a run takes %s, and all is at rest when nothing happens for %s",
		writes, strings.Join(b.Watched, ", "), took.Round(time.Second), b.Quiet.Round(100*time.Millisecond))
}

// OtherCounts returns a line for each key whose objects are created or deleted more often than in
// the baseline runs, or less often, except for what t tolerates.
func (b *Baseline) OtherCounts(now Counts, t Tolerance) []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var lines []string
	compare := func(what string, one, two, now map[string]int) {
		for _, key := range slices.Sorted(maps.Keys(unite(one, now))) {
			most, least := max(one[key], two[key]), min(one[key], two[key])
			switch {
			case b.Uncounted[key] || t.ignores(key):
			case now[key] > most:
				lines = append(lines, fmt.Sprintf("%s: %s %s, not %s", key, what, words.Times(now[key]), words.Times(most)))
			case now[key] < least && !t.Fewer:
				lines = append(lines, fmt.Sprintf("%s: %s %s, not %s", key, what, words.Times(now[key]), words.Times(least)))
			}
		}
	}
	compare("created", b.Counts[0].Created, b.Counts[1].Created, now.Created)
	compare("deleted", b.Counts[0].Deleted, b.Counts[1].Deleted, now.Deleted)
	return lines
}

// LearnCounts compares the counts of another run without a fault with those of the first run. From then
// on, objects whose number differs are not counted. It returns the keys of these objects, without those
// that were not counted before.
func (b *Baseline) LearnCounts(now Counts) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for _, pair := range [][2]map[string]int{{b.Counts[0].Created, now.Created}, {b.Counts[0].Deleted, now.Deleted}} {
		for _, key := range slices.Sorted(maps.Keys(unite(pair[0], pair[1]))) {
			if pair[0][key] != pair[1][key] && !b.Uncounted[key] {
				b.Uncounted[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// IsUncounted reports whether the objects with a key are not counted.
func (b *Baseline) IsUncounted(key string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.Uncounted[key]
}
