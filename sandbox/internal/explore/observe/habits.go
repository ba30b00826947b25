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

// Habit is a change or a refused write that recurs forever in an otherwise quiet cluster, by
// the operator or another client: a field of an object that changes back and forth, or a write
// that is refused each time.
type Habit struct {
	// What is the key of the object, with the generated part of its name as *, or the write. Field
	// is empty for a write, and for an update that changes only metadata such as the
	// resourceVersion.
	What, Field string
}

// Learnt is a habit that was seen in a baseline run.
type Learnt struct {
	Habit
	// version is a version of the object, nil for a write; values are the values that the field
	// had.
	version *Version
	values  []string
}

// Habits distinguishes habits from other activity. Baseline runs learn habits; other runs
// ignore the known habits, and count all other changes as activity.
type Habits struct {
	Unjudged []workload.Unjudged

	mu sync.Mutex
	// Learns is set if habits are learned.
	Learns bool
	known  map[Habit]bool
	// fields and refused count the changes of each field and the refusals of each write since the
	// last mark.
	fields  map[types.UID]map[string]*tally
	refused map[Habit]*tally
	// any is the time of the last event of any sort, and last the time of the last event that is
	// not a habit.
	any, last time.Time
	// pace is the time between the last two changes of the field that changed last, 0 after its
	// first change.
	pace time.Duration
	// recent are possible habits, seen since the last event that is not a habit.
	recent map[Habit]*again
}

// tally counts the changes of a field, or the refusals of a write.
type tally struct {
	times, returns int
	values         []string
	last           time.Time
}

// again counts the events of a possible habit.
type again struct {
	version     *Version
	values      []string
	times       int
	first, last time.Time
}

const (
	// A change counts as a habit from the mostReturns-th time on that the field returns to an
	// earlier value. A refused write, or an update that changes nothing but metadata, counts as a
	// habit from the mostRefused-th time on.
	mostReturns = 2
	mostRefused = 3
	// mostValues is the maximum number of values that are kept for a field.
	mostValues = 8
	// slow is the shortest interval between two changes that may be a period. Faster changes end
	// within the quiet time.
	slow = 500 * time.Millisecond
)

// Mark forgets all changes, as a new step begins.
func (h *Habits) Mark() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fields, h.refused, h.recent, h.pace = nil, nil, nil, 0
}

// Know sets the known habits, and ends learning.
func (h *Habits) Know(known map[Habit]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Learns, h.known = false, known
}

// changed records a version of an object, and reports whether it is activity, that is, not a
// habit.
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

// note counts a change, and returns the time since the previous change.
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

// other records activity that is not a habit. It returns true.
func (h *Habits) other(at time.Time) bool {
	h.any, h.last, h.pace, h.recent = at, at, 0, nil
	return true
}

// comesAgain records an event that may be a habit.
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

// change is a change of a field: its path, and the old and new value.
type change struct{ path, old, new string }

// changes returns the fields that changed in a version; if none did, a single change with an
// empty path. judged is false if all changed fields are excluded from the verdict.
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

// OfEachVersion reports whether a field differs in each version of an object, such as
// metadata.resourceVersion.
func OfEachVersion(path string) bool {
	return path == "metadata.resourceVersion" || path == "metadata.managedFields" || path == "metadata.generation"
}

// changedPaths returns the paths of the fields that changed in a version, each once, with []
// for any item of a list.
func (v *Version) changedPaths() []string {
	var paths []string
	for _, path := range state.Flatten(v.Old.Object, OfEachVersion).Differ(state.Flatten(v.Object.Object, OfEachVersion)) {
		if path = state.AnyIndex(path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// wrote records a write of the operator that was refused. Successful writes are recorded by
// changed, and the deletion of a missing object changes nothing.
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

// habit returns the habit that a refused write may be.
func (r *Request) habit() Habit {
	return Habit{What: fmt.Sprintf("%s: %d", Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}, r.Upstream)}
}

// Since returns the time of the last event that is not a habit.
func (h *Habits) Since() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Quiet returns the time for which the cluster has been quiet at now, counted from began at the
// earliest. In a run that learns, the cluster is also quiet if nothing but possible habits has
// happened for twice that time; and after a change that may be periodic, the result stays below
// enough until the next period would be over.
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

// Learnt returns the habits that went on while the cluster was otherwise quiet: events that
// recurred over at least half of enough. Events that follow each other faster are the end of
// earlier activity.
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

// Mask adds the field of a habit to m, so that it is not compared, and returns the added masks.
// The object is named by its key in names.
func (l *Learnt) Mask(names Names, m *state.Mask) []state.Masked {
	if l.version == nil || l.Field == "" || len(l.values) < 2 {
		return nil
	}
	return m.Learn([]state.Difference{{Object: names.Key(l.version), Path: l.Field, Want: l.values[0], Got: l.values[1]}}, changesAtRest)
}

// changesAtRest is the reason that users see for a masked field.
const changesAtRest = "changes again and again while all is at rest"
