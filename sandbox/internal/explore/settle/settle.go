// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"context"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// Settler knows when all is at rest in the present step of a run.
type Settler struct {
	Recorder *observe.Recorder
	Log      *observe.Log
	Habits   *observe.Habits
	Proxy    *proxy.Server
	// Base is nil in an undisturbed run, and fault as well.
	Base  *baseline.Baseline
	Fault *faults.Fault
	// Most is how long nothing must happen in an undisturbed run.
	Most time.Duration
	// Say, unless it is nil, says how users have a field not judged.
	Say func(resource, path string) string

	// Step is the number of the present step, began the time of its last action, and first its first
	// request.
	Step, first int
	Began       time.Time
	// Revisions are the revisions at which the steps began.
	Revisions []int64
}

// Begin begins a step.
func (s *Settler) Begin() (began time.Time, revision int64) {
	s.Began, revision = time.Now(), s.Recorder.Revision()
	s.Revisions = append(s.Revisions, revision)
	s.Habits.Mark()
	return s.Began, revision
}

// Act notes an action of the kit. The time of quiet begins again with it.
func (s *Settler) Act() { s.Began = time.Now() }

// Over ends the present step, and returns the number of requests until then.
func (s *Settler) Over() int {
	s.Step++
	s.first = s.Log.Len()
	return s.first
}

// QuietFor returns since when nothing has happened: no change of any object, and no write of the
// operator that was refused. Writes that change nothing and habits do not count.
func (s *Settler) QuietFor() time.Duration {
	return s.Habits.Quiet(s.Began, time.Now(), s.Enough())
}

// lastQuiet is how long nothing happens, in a step that nothing disturbs, after the last write.
// Later changes come in the steps that follow nevertheless.
const lastQuiet = 400 * time.Millisecond

// Quiet returns how long nothing must happen in a step for all to be at rest. Where nothing
// is disturbed, and the last write of the step has come, that is short. An operator that
// waits before it goes on is otherwise given as long as it takes undisturbed.
func (s *Settler) Quiet(step int) time.Duration {
	base := &s.Base.Steps[step]
	switch f := s.Fault; {
	case step == len(s.Base.Steps)-1:
		return s.Base.Quiet
	case f != nil && step >= f.Step && step <= f.Until:
		return base.Quiet
	case s.lastWriteCame(base):
		return lastQuiet
	}
	return base.Quiet
}

// lastWriteCame reports whether the operator has sent the last kind of write of this step.
func (s *Settler) lastWriteCame(base *baseline.BaseStep) bool {
	if base.Lasts == 0 {
		return false
	}
	n := 0
	requests := s.Log.Since(s.first)
	for i := range requests {
		if requests[i].Writes(s.Base.Locks) && observe.CallOf(&requests[i], s.Base.Names.Stable) == base.Last {
			n++
		}
	}
	return n >= base.Lasts
}

// Enough returns how long nothing must happen in an undisturbed run for all to be at rest: longer
// while there is a pod or a claim for which something should happen, as on a machine that is busy.
func (s *Settler) Enough() time.Duration {
	if s.Recorder.Unfinished() {
		return 3 * s.Most
	}
	return s.Most
}

// Rest waits until all is at rest in a step, or the time is over.
func (s *Settler) Rest(ctx context.Context, step int, limit time.Duration) {
	over := time.After(limit)
	for s.QuietFor() < s.Quiet(step) {
		select {
		case <-time.After(observe.Look):
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Watches returns the resources that the operator watches.
func (s *Settler) Watches() []string { return s.Proxy.Watched() }

// MissingWatches returns the resources that the operator watches as soon as it has started,
// and does not watch now: it is not up yet. Others are only watched when they are needed.
func (s *Settler) MissingWatches() []string {
	now := s.Watches()
	return slices.DeleteFunc(slices.Clone(s.Base.AtStart), func(resource string) bool { return slices.Contains(now, resource) })
}

// RequestsIn counts the reads and the writes of the last while.
func (s *Settler) RequestsIn(while time.Duration) (reads, writes int) {
	since := time.Now().Add(-while)
	for _, request := range s.Log.Since(s.first) {
		switch {
		case !request.Time.After(since):
		case request.Writes(s.locks()):
			writes++
		case (request.Verb == "get" || request.Verb == "list") && request.Resource != "" &&
			!slices.Contains(observe.Election, request.Resource) && !s.locks()[request.Resource+" "+request.Namespace+"/"+request.Name]:
			reads++
		}
	}
	return reads, writes
}

func (s *Settler) locks() map[string]bool {
	if s.Base == nil {
		return nil
	}
	return s.Base.Locks
}

// Restless names the change that happens all the time.
func (s *Settler) Restless(while time.Duration) string {
	versions, _ := s.Recorder.All()
	return observe.Restless(s.Log.Since(s.first), versions, s.locks(), while, time.Now())
}

// unjudge says how users have a field not judged.
func (s *Settler) unjudge(resource, path string) string {
	if s.Say != nil {
		return s.Say(resource, path)
	}
	return observe.UnjudgedLine(resource, path)
}

// Advice says how all may come to rest nevertheless.
func (s *Settler) Advice() []string {
	versions, _ := s.Recorder.All()
	return observe.Advice(versions, time.Now().Add(-observe.RestlessFor), s.Most, s.unjudge)
}

// LastWrites returns the last writes of the operator.
func (s *Settler) LastWrites(n int) []string {
	var lines []string
	for _, request := range s.Log.Since(0) {
		if request.Writes(s.locks()) {
			lines = append(lines, request.String())
		}
	}
	return lines[max(0, len(lines)-n):]
}
