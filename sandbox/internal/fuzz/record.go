// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"net/http"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/settle"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// record provides everything recorded in a testbed since the last call of its method mark: object
// versions, the operator's requests, and fuzz's own actions.
type record struct {
	settler *settle.Settler
	notes   *observe.Notes
	// from is the index in the log of the first request after the last call of mark. began is the
	// time of that call.
	from   int
	began  time.Time
	latest observe.LatestState
}

// mark begins a new recording period. It discards earlier object versions, requests and notes. It
// keeps the current objects, and the earlier requests that later checks still need.
func (r *record) mark() {
	r.began, r.from = time.Now(), r.settler.Log.Len()
	r.settler.Act()
	r.notes.All = nil
	r.settler.Recorder.Forget()
	r.settler.Log.Forget(r.matters())
	r.settler.Habits.Mark()
}

// matters returns a function that reports whether later checks still need an earlier request. They
// need denied requests, requests of leader election, and writes of objects that exist.
func (r *record) matters() func(*observe.Request) bool {
	present := map[string]bool{}
	for _, v := range r.settler.Recorder.Objects() {
		present[v.Key()] = true
	}
	return func(of *observe.Request) bool {
		return of.Upstream == http.StatusForbidden || slices.Contains(observe.Election, of.Resource) ||
			slices.Contains(observe.WriteVerbs, of.Verb) && (of.Name == "" || present[observe.NameKey(of.Resource, of.Namespace, of.Name)])
	}
}

// act records an action of fuzz in the timeline. Each action counts as activity, so that waiting
// for a quiet cluster starts again.
func (r *record) act(format string, args ...any) {
	r.notes.Add(format, args...)
	r.settler.Act()
}

func (r *record) requests() []observe.Request { return r.settler.Log.Since(r.from) }

func (r *record) locks() map[string]bool { return r.settler.Log.LockKeys() }

func (r *record) versions() []observe.Version {
	versions, _ := r.settler.Recorder.All()
	return versions
}

// activity summarizes the recent activity in the cluster.
type activity struct {
	// quiet is the time since the last change other than a habit (recurring change). Writes without
	// effect are not changes.
	quiet time.Duration
	// requests counts the operator's recent requests, except for watches and leader election. last
	// lists the last five of these requests, one line each.
	requests int
	last     []string
}

// activity summarizes the activity since the last call of mark. It counts the requests that ended
// within the last `while`.
func (r *record) activity(while time.Duration) activity {
	now := time.Now()
	a := activityOf(r.requests(), r.locks(), now.Add(-while))
	a.quiet = r.settler.Habits.Quiet(r.settler.Began, now, while)
	return a
}

// activityOf summarizes the requests that ended after `since`.
func activityOf(requests []observe.Request, locks map[string]bool, since time.Time) activity {
	var a activity
	for _, r := range requests {
		if (r.Polls(locks) || r.Writes(locks)) && r.Ended().After(since) {
			a.requests++
			a.last = append(a.last, r.String())
		}
	}
	a.last = a.last[max(0, len(a.last)-5):]
	return a
}

// state returns the normalized state of all objects that are compared. The caller must not modify it.
func (r *record) state() state.State {
	return r.latest.Of(r.settler.Recorder, func(objects []observe.Version) state.State {
		objects = slices.DeleteFunc(objects, func(v observe.Version) bool { return leftOut(v.Resource, v.Object) })
		return observe.Names{}.State(objects, r.locks())
	})
}

// standing returns the given differences, except for differences in objects that keep changing.
func (r *record) standing(all []state.Difference) []state.Difference {
	return observe.Standing(all, observe.Names{}, r.versions(), time.Now().Add(-observe.RestlessFor))
}

// reactions returns the faults that can be injected into the operator's writes since the last call
// of mark.
func (r *record) reactions() faults.Faults {
	return faults.PlanReactions(r.requests(), r.versions(), r.locks())
}

// strangers returns an error if another client has interfered since the last call of mark: if a
// client other than the known field managers has written to objects, or if a client has added a
// rule to the fault proxy.
func (r *record) strangers(rules []fault.RuleStatus, known map[string]bool) error {
	// A write of another client is not detected if the operator, too, has ever written the same
	// object.
	return judge.Strangers(rules, &observe.Record{Requests: r.settler.Log.Since(0), Versions: r.versions()}, known)
}

// managers returns the set of field managers of all objects, including objects deleted since the
// last call of mark.
func (r *record) managers() map[string]bool {
	all := map[string]bool{}
	for _, manager := range (&observe.Record{Versions: r.versions()}).Managers() {
		all[manager] = true
	}
	return all
}

// broken returns a problem if built-in invariants were violated since the last call of mark, or
// nil.
func (r *record) broken() (*Problem, error) {
	versions, err := r.settler.Recorder.All()
	var lines []string
	for _, p := range judge.BrokenSince(r.began, nil, versions) {
		lines = append(lines, p.Lines...)
	}
	if len(lines) == 0 {
		return nil, err
	}
	return &Problem{Oracle: judge.Broken, Lines: lines}, err
}

// timeline returns the writes and deletions since the last call of mark, and fuzz's own actions.
func (r *record) timeline() []results.Moment {
	versions := slices.DeleteFunc(r.versions(), func(v observe.Version) bool { return v.Time.Before(r.began) })
	o := &judge.Outcome{Record: observe.Record{Began: r.began, Notes: r.notes.All, Requests: r.requests(), Versions: versions}}
	return judge.Timeline(o, r.locks())
}

// scope returns the objects and fields by which edits are judged. `ignored` lists the user's
// exclusions.
func (r *record) scope(mask *state.Mask, ignored []string) *results.Scope {
	recorder := r.settler.Recorder
	c := observe.NewCensus(observe.Names{}, r.locks())
	objects := recorder.Objects()
	for i := range objects {
		if v := &objects[i]; leftOut(v.Resource, v.Object) {
			c.Leave(v.Resource, "the history of others", 0)
		} else {
			c.Add(v, mask)
		}
	}
	s := c.Scope(recorder.Kinds(), recorder.Never, mask)
	for _, own := range ignored {
		s.Besides = append(s.Besides, own+": --ignore says so")
	}
	s.Besides = append(s.Besides, "how often something was changed, when it was done, and claims for storage that are kept or have grown")
	return s
}
