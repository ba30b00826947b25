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

// Settler detects when the cluster is quiet in the present step of a run: nothing but habits
// has changed for some time.
type Settler struct {
	Recorder *observe.Recorder
	Log      *observe.Log
	Habits   *observe.Habits
	Proxy    *proxy.Server
	// Base and Fault are nil in a baseline run.
	Base  *baseline.Baseline
	Fault *faults.Fault
	// Most is the quiet time of baseline runs (--quiet).
	Most time.Duration
	// Say, unless it is nil, returns the advice to users about excluding a field from the verdict.
	Say func(resource, path string) string

	// Step is the number of the present step, first the index of its first request, and Began the
	// time of the last action in it.
	Step, first int
	Began       time.Time
	// Revisions are the revisions at which the steps began.
	Revisions []int64
}

// Begin starts a step, and returns its time and revision.
func (s *Settler) Begin() (began time.Time, revision int64) {
	s.Began, revision = time.Now(), s.Recorder.Revision()
	s.Revisions = append(s.Revisions, revision)
	s.Habits.Mark()
	return s.Began, revision
}

// Act records an action of explore. The quiet time is counted again from then on.
func (s *Settler) Act() { s.Began = time.Now() }

// Over ends the present step, and returns the number of requests so far.
func (s *Settler) Over() int {
	s.Step++
	s.first = s.Log.Len()
	return s.first
}

// QuietFor returns the time since the last change of an object or refused write of the
// operator. Habits and writes without effect do not count.
func (s *Settler) QuietFor() time.Duration {
	return s.Habits.Quiet(s.Began, time.Now(), s.Enough())
}

// lastQuiet is the quiet time after the last write of a step without a fault. Changes that come
// later are still seen, in the following steps.
const lastQuiet = 400 * time.Millisecond

// Quiet returns the quiet time for a step in a run with a fault. In the last step it is the
// longest quiet time of all steps. It is short in a step without the fault, after the last
// write that the baseline has in the step. Otherwise it is the quiet time of the step in the
// baseline, as the operator may pause before it continues.
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

// Enough returns the quiet time for a baseline run: longer while a pod or a claim is not
// finished, as may happen on a busy machine.
func (s *Settler) Enough() time.Duration {
	if s.Recorder.Unfinished() {
		return 3 * s.Most
	}
	return s.Most
}

// Rest waits until the cluster is quiet, or for the limit.
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

// MissingWatches returns the resources that the operator watches right after its start in the
// baseline, and does not watch now: it has not started yet. Other watches are opened only when
// needed.
func (s *Settler) MissingWatches() []string {
	now := s.Watches()
	return slices.DeleteFunc(slices.Clone(s.Base.AtStart), func(resource string) bool { return slices.Contains(now, resource) })
}

// RequestsIn counts the reads and the writes of the operator in this step within the last
// while.
func (s *Settler) RequestsIn(while time.Duration) (reads, writes int) {
	since := time.Now().Add(-while)
	for _, request := range s.Log.Since(s.first) {
		switch {
		case !request.Time.After(since):
		case request.Writes(s.Base.LockKeys()):
			writes++
		case request.Polls(s.Base.LockKeys()):
			reads++
		}
	}
	return reads, writes
}

// Restless describes the most frequent change in this step within the last while.
func (s *Settler) Restless(while time.Duration) string {
	versions, _ := s.Recorder.All()
	return observe.Restless(s.Log.Since(s.first), versions, s.Base.LockKeys(), while, time.Now())
}

// unjudge returns the advice to users about excluding a field from the verdict.
func (s *Settler) unjudge(resource, path string) string {
	if s.Say != nil {
		return s.Say(resource, path)
	}
	return observe.UnjudgedLine(resource, path)
}

// Advice returns lines for users on getting the cluster quiet.
func (s *Settler) Advice() []string {
	versions, _ := s.Recorder.All()
	return observe.Advice(versions, time.Now().Add(-observe.RestlessFor), s.Most, s.unjudge)
}

// LastWrites returns the last n writes of the operator, a line each.
func (s *Settler) LastWrites(n int) []string {
	var lines []string
	for _, request := range s.Log.Since(0) {
		if request.Writes(s.Base.LockKeys()) {
			lines = append(lines, request.String())
		}
	}
	return lines[max(0, len(lines)-n):]
}
