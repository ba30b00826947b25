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

// Habit identifies a change that recurs forever in an otherwise quiet cluster: an object's field
// that changes back and forth, or a write that is rejected each time. The operator or another
// client may cause it.
type Habit struct {
	// What is the general key of the changed object (see Version.GeneralKey), or a description of
	// the rejected write. Field is the path of the changed field. It is empty for a write, and for
	// an update that changes only metadata such as the resourceVersion.
	What, Field string
}

// Learnt is a habit observed in a baseline run.
type Learnt struct {
	Habit
	// version is a version of the changed object, or nil if the habit is a rejected write. values
	// lists the observed values of the habit's field.
	version *Version
	values  []string
}

// Habits distinguishes habits (recurring changes) from other activity. In a baseline run, it learns
// habits. In other runs, it ignores known habits and treats all other changes as activity.
type Habits struct {
	Unjudged []workload.Unjudged

	mu sync.Mutex
	// Learns is set in baseline runs, in which habits are learned.
	Learns bool
	known  map[Habit]bool
	// fields counts the changes of each field in the current step, by object UID and path. refused
	// counts the rejections of each write in the current step.
	fields  map[types.UID]map[string]*tally
	refused map[Habit]*tally
	// any is the time of the last object change or rejected write. last is the time of the last
	// change or rejected write that is not a habit.
	any, last time.Time
	// pace is the time between the last two changes of the field that has changed most recently. If
	// an update changes several fields, pace is the shortest of these times. It is 0 after the
	// first change of a field.
	pace time.Duration
	// recent counts the repetitions of possible habits since the last other activity, by habit.
	recent map[Habit]*again
}

// tally counts the changes of a field, or the rejections of a write: times counts all of them, and
// returns counts only the changes to an earlier value.
type tally struct {
	times, returns int
	values         []string
	last           time.Time
}

// again counts the repetitions of a possible habit, which is a change that may turn out to recur
// forever.
type again struct {
	version     *Version
	values      []string
	times       int
	first, last time.Time
}

const (
	// A change counts as a habit once its field has returned to an earlier value mostReturns times.
	// A rejected write, or an update that changes only metadata, counts as a habit from its
	// mostRefused-th occurrence.
	mostReturns = 2
	mostRefused = 3
	// mostValues is the maximum number of values stored per field.
	mostValues = 8
	// slow is the shortest interval between two changes of a field after which Quiet waits for
	// another change. Shorter intervals need no special treatment, because any quiet time exceeds
	// them.
	slow = 500 * time.Millisecond
)

// Mark resets all counters at the beginning of a step.
func (h *Habits) Mark() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fields, h.refused, h.recent, h.pace = nil, nil, nil, 0
}

// Know sets the known habits, which do not count as activity from now on. It also ends the learning
// of habits.
func (h *Habits) Know(known map[Habit]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Learns, h.known = false, known
}

// changed records an object version, and reports whether the version is activity rather than a
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

// note counts a change from the value `old` to the value `now`. It returns the time since the
// previous change of the same field, or 0 for the first change.
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

// other records a change or rejected write that is not a habit. It always returns true, as the
// result of `changed`.
func (h *Habits) other(at time.Time) bool {
	h.any, h.last, h.pace, h.recent = at, at, 0, nil
	return true
}

// comesAgain records a repetition of a possible habit. `v` is the object version, or nil for a
// rejected write, and `values` lists the old and the new value of the field.
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

// change is a changed field with its path, old value and new value.
type change struct{ path, old, new string }

// changes returns the fields changed by a version, except for fields that the workload excludes
// from the verdict. If no field has changed, it returns a single change with an empty path.
// `judged` is false if all changed fields are excluded.
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

// OfEachVersion reports whether a field, such as metadata.resourceVersion, may differ between any
// two versions of an object.
func OfEachVersion(path string) bool {
	return path == "metadata.resourceVersion" || path == "metadata.managedFields" || path == "metadata.generation"
}

// changedPaths returns the distinct paths of fields changed by a version. [] in a path stands for
// any list item.
func (v *Version) changedPaths() []string {
	var paths []string
	for _, path := range state.Flatten(v.Old.Object, OfEachVersion).Differ(state.Flatten(v.Object.Object, OfEachVersion)) {
		if path = state.AnyIndex(path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// wrote records a rejected write. It ignores successful writes, whose effects are recorded as
// object versions, and deletions of missing objects, which have no effect.
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

// habit returns the habit that a rejected write may belong to.
func (r *Request) habit() Habit {
	return Habit{What: fmt.Sprintf("%s: %d", Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}, r.Upstream)}
}

// Since returns the time of the last object change or rejected write that is not a habit.
func (h *Habits) Since() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Quiet returns for how long the cluster has been quiet at the time `now`, counted from `began` at
// the earliest. In a baseline run, possible habits do not count as changes if nothing else has
// happened for twice the returned time. After a change that may be periodic, the result stays below
// `enough` until the next change would be due.
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

// Learnt returns the habits that continued while the cluster was otherwise quiet. The repetitions
// of a habit must span at least half of `enough`. A shorter series may only be the end of earlier
// activity.
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

// Mask excludes the habit's field from comparison by adding the field to the mask `m`. It returns
// the entries that it has added. `names` provides the object's key.
func (l *Learnt) Mask(names Names, m *state.Mask) []state.Masked {
	if l.version == nil || l.Field == "" || len(l.values) < 2 {
		return nil
	}
	return m.Learn([]state.Difference{{Object: names.Key(l.version), Path: l.Field, Want: l.values[0], Got: l.values[1]}}, changesAtRest)
}

// changesAtRest is the reason, as shown to users, for not comparing a field that keeps changing in
// a quiet cluster.
const changesAtRest = "changes again and again while all is at rest"
