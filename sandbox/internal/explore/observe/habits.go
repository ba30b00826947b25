// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Habit is something that an operator, or another client, does again and again while all is at rest:
// a change of a field of an object, to and fro, or a write that is refused each time.
type Habit struct {
	// What is the object, with a generated name as * is, or the write; Field is empty for a
	// write, and for a change of nothing but times and the like.
	What, Field string
}

// Learnt is a habit that was seen in an undisturbed run.
type Learnt struct {
	Habit
	// version is a version of the object, nil for a write, and values are the values of the field.
	version *Version
	values  []string
}

// Habits tell unrest from habits. In an undisturbed run they are learnt; in
// other runs only known habits count, which are no unrest.
type Habits struct {
	Unjudged []workload.Unjudged

	mu sync.Mutex
	// Learns: habits are looked for.
	Learns bool
	known  map[Habit]bool
	// fields and refused count the changes and refused writes since the last mark.
	fields  map[types.UID]map[string]*tally
	refused map[Habit]*tally
	// any is when anything happened, and last when something else than a habit did.
	any, last time.Time
	// pace is how long it was between the last two changes of what changed last, 0 for what
	// changed for the first time.
	pace time.Duration
	// recent are possible habits, since something else happened.
	recent map[Habit]*again
}

// tally counts the changes of a field, or the refusals of a write.
type tally struct {
	times, returns int
	values         []string
	last           time.Time
}

// again is a possible habit.
type again struct {
	version     *Version
	values      []string
	times       int
	first, last time.Time
}

const (
	// mostReturns is how often a field has a value again that it had before until that may be
	// a habit, and mostRefused how often the same write is refused, or nothing but a time changes.
	mostReturns = 2
	mostRefused = 3
	// mostValues bounds the values that are kept of a field.
	mostValues = 8
	// slow is the least time between two changes that may be a period: faster changes are over
	// when all is at rest.
	slow = 500 * time.Millisecond
)

// Mark forgets all changes, as a new step begins.
func (h *Habits) Mark() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fields, h.refused, h.recent, h.pace = nil, nil, nil, 0
}

// Know has habits known that were learnt in other runs.
func (h *Habits) Know(known map[Habit]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Learns, h.known = false, known
}

// changed notes a version of an object, and reports whether it is unrest.
func (h *Habits) changed(v *Version) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.Type != watch.Modified || v.Old == nil || !h.Learns && len(h.known)+len(h.Unjudged) == 0 {
		return h.other(v.Time)
	}
	fields, judged := h.changes(v)
	if !judged {
		return false
	}
	what := v.GeneralKey()
	if !h.Learns {
		if slices.ContainsFunc(fields, func(c change) bool { return !h.known[Habit{what, c.path}] }) {
			return h.other(v.Time)
		}
		return false
	}
	if h.fields == nil {
		h.fields = map[types.UID]map[string]*tally{}
	}
	uid := v.Object.GetUID()
	if h.fields[uid] == nil {
		h.fields[uid] = map[string]*tally{}
	}
	pace, all := time.Duration(0), true
	for i, c := range fields {
		t := h.fields[uid][c.path]
		if t == nil {
			t = &tally{}
			h.fields[uid][c.path] = t
		}
		between := t.note(v.Time, c.old, c.new)
		if i == 0 || between < pace {
			pace = between
		}
		all = all && (t.returns >= mostReturns || c.path == "" && t.times >= mostRefused)
	}
	if !all {
		unrest := h.other(v.Time)
		h.pace = pace
		return unrest
	}
	for _, c := range fields {
		h.comesAgain(Habit{what, c.path}, v.Time, v, c.old, c.new)
	}
	return false
}

// note notes a change, and returns the time since the change before.
func (t *tally) note(at time.Time, old, now string) (between time.Duration) {
	if t.times++; t.times > 1 {
		between = at.Sub(t.last)
	}
	t.last = at
	if slices.Contains(t.values, now) {
		t.returns++
	}
	for _, value := range []string{old, now} {
		if !slices.Contains(t.values, value) && len(t.values) < mostValues {
			t.values = append(t.values, value)
		}
	}
	return between
}

// other notes that something else than a habit has happened.
func (h *Habits) other(at time.Time) bool {
	h.any, h.last, h.pace, h.recent = at, at, 0, nil
	return true
}

// comesAgain notes that something has happened that may be a habit.
func (h *Habits) comesAgain(what Habit, at time.Time, v *Version, values ...string) {
	h.any = at
	if h.recent == nil {
		h.recent = map[Habit]*again{}
	}
	a := h.recent[what]
	if a == nil {
		a = &again{first: at}
		h.recent[what] = a
	}
	a.version, a.last = v, at
	a.times++
	for _, value := range values {
		if !slices.Contains(a.values, value) && len(a.values) < mostValues {
			a.values = append(a.values, value)
		}
	}
}

// change is a change of a field.
type change struct{ path, old, new string }

// changes returns which fields a version has changed: one without a path if none. It is not judged
// if all of them are fields that no run is judged by.
func (h *Habits) changes(v *Version) (all []change, judged bool) {
	before, now := state.Flatten(v.Old.Object, OfEachVersion), state.Flatten(v.Object.Object, OfEachVersion)
	differ := before.Differ(now)
	for _, path := range differ {
		if !slices.ContainsFunc(h.Unjudged, func(u workload.Unjudged) bool {
			return ResourceIs(v.Resource, u.Resource) && state.Within(u.Path, state.AnyIndex(path))
		}) {
			all = append(all, change{path, before[path], now[path]})
		}
	}
	if len(differ) == 0 {
		return []change{{}}, true
	}
	return all, len(all) > 0
}

// OfEachVersion reports whether a field is another in each version of an object.
func OfEachVersion(path string) bool {
	return path == "metadata.resourceVersion" || path == "metadata.managedFields" || path == "metadata.generation"
}

// changedPaths returns which fields a version has changed, as they are written for all items of a list.
func (v *Version) changedPaths() []string {
	var paths []string
	for _, path := range state.Flatten(v.Old.Object, OfEachVersion).Differ(state.Flatten(v.Object.Object, OfEachVersion)) {
		if path = state.AnyIndex(path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// wrote notes a write of the operator. One that is done is seen by what it changes, and one that
// deletes what is not there changes nothing.
func (h *Habits) wrote(r *Request, now time.Time) {
	if r.Succeeded() || r.DeletesNothing() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	what := r.habit()
	switch {
	case h.known[what]:
		return
	case !h.Learns:
		h.other(now)
		return
	}
	if h.refused == nil {
		h.refused = map[Habit]*tally{}
	}
	t := h.refused[what]
	if t == nil {
		t = &tally{}
		h.refused[what] = t
	}
	pace := t.note(now, "", "")
	if t.times < mostRefused {
		h.other(now)
		h.pace = pace
		return
	}
	h.comesAgain(what, now, nil)
}

// habit names a refused write.
func (r *Request) habit() Habit {
	return Habit{What: fmt.Sprintf("%s: %d", Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}, r.Upstream)}
}

// Since returns when something else than a habit happened last.
func (h *Habits) Since() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Quiet returns for how long all has been at rest since it began, at a moment. Where something
// happens again and again, twice as much time has to pass without anything else; and what changes
// with a period may change once more after that.
func (h *Habits) Quiet(began, now time.Time, enough time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	sinceAny, sinceOther := now.Sub(began), now.Sub(began)
	if h.any.After(began) {
		sinceAny = now.Sub(h.any)
	}
	if h.last.After(began) {
		sinceOther = now.Sub(h.last)
	}
	if !h.Learns {
		return sinceOther
	}
	if h.pace >= slow && sinceAny < min(h.pace+h.pace/2, 3*enough) {
		sinceAny = min(sinceAny, enough-1)
	}
	return max(sinceAny, sinceOther/2)
}

// Learnt returns the habits that all was at rest in spite of: what has come more than once, and
// over a time, since anything else happened. What ends with all else comes at once.
func (h *Habits) Learnt(enough time.Duration) []Learnt {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Learnt
	for what, a := range h.recent {
		if a.times > 1 && a.last.Sub(a.first) >= enough/2 {
			all = append(all, Learnt{what, a.version, a.values})
		}
	}
	return all
}

// Mask masks the fields that change again and again.
func (l *Learnt) Mask(names Names, m *state.Mask) []state.Masked {
	if l.version == nil || l.Field == "" || len(l.values) < 2 {
		return nil
	}
	return m.Learn([]state.Difference{{Object: names.Key(l.version), Path: l.Field, Want: l.values[0], Got: l.values[1]}}, changesAtRest)
}

// changesAtRest is why something is masked.
const changesAtRest = "changes again and again while all is at rest"
