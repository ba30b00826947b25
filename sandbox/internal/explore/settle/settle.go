// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/proxy"
)

// Settler detects when the cluster has become quiet in the current step of a run: nothing has
// changed for some time, except for recurring changes ([observe.Habits]).
type Settler struct {
	Recorder *observe.Recorder
	Log      *observe.Log
	Habits   *observe.Habits
	Proxy    *proxy.Server
	// Base is the baseline that the run is compared with. Fault is the fault that the run injects,
	// or nil if there is none. Both are nil in a baseline run and in fuzz.
	Base  *baseline.Baseline
	Fault *faults.Fault
	// Most is the time without changes after which a step of a baseline run ends: the value of
	// --quiet, or more on a busy machine.
	Most time.Duration
	// Say, unless nil, returns the advice for users on how to exclude a field of a resource from
	// the verdict.
	Say func(resource, path string) string

	// Step is the number of the current step. first is the index of the step's first request in
	// Log. Began is the time of the last action of explore or fuzz in the step.
	Step, first int
	Began       time.Time
	// Revisions lists the etcd revisions at which the steps began.
	Revisions []int64
}

// Begin starts a step. It returns the start time and the etcd revision at that time.
func (s *Settler) Begin() (began time.Time, revision int64) {
	s.Began, revision = time.Now(), s.Recorder.Revision()
	s.Revisions = append(s.Revisions, revision)
	s.Habits.Mark()
	return s.Began, revision
}

// Act records an action of explore or fuzz itself, such as a fault. Each action restarts the
// quiet time.
func (s *Settler) Act() { s.Began = time.Now() }

// Over ends the current step. It returns the number of requests logged so far in all steps, which
// is the index in Log of the next step's first request.
func (s *Settler) Over() int {
	s.Step++
	s.first = s.Log.Len()
	return s.first
}

// QuietFor returns the time since the last object change, rejected write of the operator, or action
// of explore or fuzz. Habits, which are changes and rejections that recur in a quiet cluster, do
// not count.
func (s *Settler) QuietFor() time.Duration {
	return s.Habits.Quiet(s.Began, time.Now(), s.Enough())
}

// lastQuiet is the time without changes after which a step without a fault ends, once the operator
// has sent the last write that the baseline expects in the step. Later changes are still noticed in
// the following steps.
const lastQuiet = 400 * time.Millisecond

// Quiet returns the time without changes after which a step ends, in a run that is compared with a
// baseline. The last step uses the longest quiet time of all steps. A step without a fault uses
// lastQuiet once the baseline's last expected write has been sent. Any other step uses its quiet
// time in the baseline, because the operator may pause before it continues.
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

// lastWriteCame reports whether the operator has sent its last write of the step, according to the
// baseline (see BaseStep.Last).
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

// Enough returns the time without changes after which a step of a baseline run ends. It is tripled
// while a pod is starting or terminating or a PersistentVolumeClaim is unbound, which can take long
// on a busy machine.
func (s *Settler) Enough() time.Duration {
	if s.Recorder.Unfinished() {
		return 3 * s.Most
	}
	return s.Most
}

// Rest waits until the cluster is quiet, but no longer than the limit.
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

// MissingWatches returns the resources that the operator watches after any of its starts, according
// to the baseline, but does not watch now. A start of the operator is complete when this list is empty.
func (s *Settler) MissingWatches() []string {
	return sets.List(sets.New(s.Base.AtStart...).Difference(sets.New(s.Watches()...)))
}

// RequestsIn counts the reads and writes that the operator has sent in the current step, within the
// duration `while` before the call.
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

// Restless describes the most frequent change in the current step, within the duration `while`
// before the call.
func (s *Settler) Restless(while time.Duration) string {
	versions, _ := s.Recorder.All()
	return observe.Restless(s.Log.Since(s.first), versions, s.Base.LockKeys(), while, time.Now())
}

// unjudge returns advice for users on how to exclude a field from the verdict.
func (s *Settler) unjudge(resource, path string) string {
	if s.Say != nil {
		return s.Say(resource, path)
	}
	return observe.UnjudgedLine(resource, path)
}

// Advice returns lines that explain to users how to make the cluster quiet.
func (s *Settler) Advice() []string {
	versions, _ := s.Recorder.All()
	return observe.Advice(versions, time.Now().Add(-observe.RestlessFor), s.Most, s.unjudge)
}

// LastWrites returns a line for each of the operator's last n writes.
func (s *Settler) LastWrites(n int) []string {
	var lines []string
	for _, request := range s.Log.Since(0) {
		if request.Writes(s.Base.LockKeys()) {
			lines = append(lines, request.String())
		}
	}
	return lines[max(0, len(lines)-n):]
}
