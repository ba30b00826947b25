// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// settler knows when all is at rest in the present step of a run.
type settler struct {
	recorder *recorder
	log      *requestLog
	habits   *habits
	proxy    *proxy.Server
	// base is nil in an undisturbed run, and fault as well.
	base  *Baseline
	fault *Fault
	// most is how long nothing must happen in an undisturbed run.
	most time.Duration
	// say, unless it is nil, says how users have a field not judged.
	say func(resource, path string) string

	// step is the number of the present step, began the time of its last action, and first its first
	// request.
	step, first int
	began       time.Time
	// revisions are the revisions at which the steps began.
	revisions []int64
}

// begin begins a step.
func (s *settler) begin() (began time.Time, revision int64) {
	s.began, revision = time.Now(), s.recorder.revision()
	s.revisions = append(s.revisions, revision)
	s.habits.mark()
	return s.began, revision
}

// act notes an action of the kit. The time of quiet begins again with it.
func (s *settler) act() { s.began = time.Now() }

// over ends the present step, and returns the number of requests until then.
func (s *settler) over() int {
	s.step++
	s.first = s.log.len()
	return s.first
}

// quietFor returns since when nothing has happened: no change of any object, and no write of the
// operator that was refused. Writes that change nothing and habits do not count.
func (s *settler) quietFor() time.Duration {
	return s.habits.quiet(s.began, time.Now(), s.enough())
}

// look is how often it is looked whether all is at rest.
const look = 50 * time.Millisecond

// shortQuiet is how long nothing happens when all is at rest, where nothing slower was
// seen; and lastQuiet, in a step that nothing disturbs, after what is written last. What comes
// later nevertheless comes in the steps that follow.
const (
	shortQuiet = time.Second
	lastQuiet  = 400 * time.Millisecond
)

// quiet returns how long nothing must happen in a step for all to be at rest. Where nothing
// is disturbed, and the last write of the step has come, that is short. An operator that
// waits before it goes on is otherwise given as long as it takes undisturbed.
func (s *settler) quiet(step int) time.Duration {
	base := &s.base.Steps[step]
	switch f := s.fault; {
	case step == len(s.base.Steps)-1:
		return s.base.Quiet
	case f != nil && step >= f.Step && step <= f.Until:
		return base.Quiet
	case s.lastWriteCame(base):
		return lastQuiet
	}
	return base.Quiet
}

// lastWriteCame reports whether the operator has written in this step what it writes last.
func (s *settler) lastWriteCame(base *BaseStep) bool {
	if base.Lasts == 0 {
		return false
	}
	n := 0
	requests := s.log.since(s.first)
	for i := range requests {
		if requests[i].writes(s.base.Locks) && callOf(&requests[i], s.base.names.stable) == base.Last {
			n++
		}
	}
	return n >= base.Lasts
}

// enough returns how long nothing must happen in an undisturbed run for all to be at rest: longer
// while there is a pod or a claim for which something should happen, as on a machine that is busy.
func (s *settler) enough() time.Duration {
	if s.recorder.unfinished() {
		return 3 * s.most
	}
	return s.most
}

// rest waits until all is at rest in a step, or the time is over.
func (s *settler) rest(ctx context.Context, step int, limit time.Duration) {
	over := time.After(limit)
	for s.quietFor() < s.quiet(step) {
		select {
		case <-time.After(look):
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// restlessFor is over which time it is looked what happens all the time.
const restlessFor = 10 * time.Second

// standing are the differences that do not come and go: of objects that have not changed since a
// moment, nor been made again.
func standing(all []state.Difference, names anonymizer, versions []Version, since time.Time) []state.Difference {
	moving := map[string]bool{}
	for i := range versions {
		if v := &versions[i]; !v.Initial && v.Time.After(since) && v.Type != watch.Deleted {
			moving[names.key(v)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(d state.Difference) bool { return moving[d.Object] })
}

// watches returns the resources that the operator watches.
func (s *settler) watches() []string { return s.proxy.Watched() }

// missingWatches returns the resources that the operator watches as soon as it has started,
// and does not watch now: it is not up yet. Others are only watched when they are needed.
func (s *settler) missingWatches() []string {
	now := s.watches()
	return slices.DeleteFunc(slices.Clone(s.base.AtStart), func(resource string) bool { return slices.Contains(now, resource) })
}

// requestsIn counts the reads and the writes of the last while.
func (s *settler) requestsIn(while time.Duration) (reads, writes int) {
	since := time.Now().Add(-while)
	for _, request := range s.log.since(s.first) {
		switch {
		case !request.Time.After(since):
		case request.writes(s.locks()):
			writes++
		case (request.Verb == "get" || request.Verb == "list") && request.Resource != "" &&
			!slices.Contains(election, request.Resource) && !s.locks()[request.Resource+" "+request.Namespace+"/"+request.Name]:
			reads++
		}
	}
	return reads, writes
}

func (s *settler) locks() map[string]bool {
	if s.base == nil {
		return nil
	}
	return s.base.Locks
}

// restless says what happens all the time.
func (s *settler) restless(while time.Duration) string {
	versions, _ := s.recorder.all()
	return restless(s.log.since(s.first), versions, s.locks(), while, time.Now())
}

// restless says what happens all the time, in a while before now: of the operator's writes that
// changed something or were refused, or else of all that changed.
func restless(requests []Request, versions []Version, locks map[string]bool, while time.Duration, now time.Time) string {
	often, last := map[string]int{}, ""
	since := now.Add(-while)
	note := func(text string) {
		if often[text]++; last == "" || often[text] > often[last] || often[text] == often[last] && text < last {
			last = text
		}
	}
	changed := map[string]bool{}
	for i := range versions {
		if v := &versions[i]; !v.Initial && !v.Habit && v.Time.After(since) {
			changed[v.key()] = true
		}
	}
	for i := range requests {
		r := &requests[i]
		if r.writes(locks) && r.Time.After(since) && (changed[nameKey(r.Resource, r.Namespace, r.Name)] || !r.succeeded() && !r.deletesNothing()) {
			note("the operator's " + Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}.String())
		}
	}
	if last == "" { // It is not the operator that writes.
		for i := range versions {
			if v := &versions[i]; !v.Initial && !v.Habit && !v.heartbeat() && v.Time.After(since) {
				note(strings.ToLower(string(v.Type)) + " " + v.key())
			}
		}
	}
	if last == "" {
		return "it does not come to rest; the last writes are"
	}
	return fmt.Sprintf("it does not come to rest: %s, %s in the last %s; the last writes are", last, times(often[last]), while)
}

// unjudge says how users have a field not judged.
func (s *settler) unjudge(resource, path string) string {
	if s.say != nil {
		return s.say(resource, path)
	}
	return unjudgedLine(resource, path)
}

// advice says how all may come to rest nevertheless.
func (s *settler) advice() []string {
	versions, _ := s.recorder.all()
	return advice(versions, time.Now().Add(-restlessFor), s.most, s.unjudge)
}

// lastWrites returns the last writes of the operator.
func (s *settler) lastWrites(n int) []string {
	var lines []string
	for _, request := range s.log.since(0) {
		if request.writes(s.locks()) {
			lines = append(lines, request.String())
		}
	}
	return lines[max(0, len(lines)-n):]
}
