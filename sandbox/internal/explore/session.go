// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Session is an operator in a sandbox, for tools such as fuzz that judge the operator without a
// workload.
type Session struct {
	run *run
	end func()
	// from is the index of the first request after the last mark, and began the time of the mark.
	from  int
	began time.Time
	// excused is the number of exits of the operator that a fault explains, and that Failures
	// leaves out.
	excused int
	// fault is the fault that was injected since the last mark; nil: none.
	fault *faults.Fault
}

// Begin opens a session; name is the name of its directory. Prepare must have been called. The
// caller must call End.
func (e *Explorer) Begin(ctx context.Context, name string) (*Session, error) {
	r, end, err := e.open(ctx, name, nil, nil, setting{})
	if err != nil {
		return nil, err
	}
	// An edit may make the API server refuse each write of the operator from then on, so that
	// refused writes are no sign of activity here.
	r.log.Habits = nil
	s := &Session{run: r, end: end}
	s.Mark()
	return s, nil
}

// End stops the operator and the sandbox.
func (s *Session) End() { s.end() }

// Client returns a client with the rights of an administrator, which bypasses the proxy.
func (s *Session) Client() dynamic.Interface { return s.run.recorder.Client }

// Start stops the operator if it runs, and starts a new process.
func (s *Session) Start() error {
	s.run.operator.Close()
	s.run.operator.Operator, s.excused = s.run.operator.Another(), 0
	return s.run.operator.Start()
}

// Kill kills the operator, and returns when the process has ended.
func (s *Session) Kill() { s.run.operator.Close() }

// Watched returns the resources that the operator watches.
func (s *Session) Watched() []string { return s.run.settler.Watches() }

// Mark sets the beginning of the period that the other methods look at, to now. Earlier
// requests, versions and notes are forgotten; the present objects are kept.
func (s *Session) Mark() {
	if s.fault.Effects().BreaksConnections {
		s.excused = len(s.run.operator.Ends())
	}
	s.fault = nil
	s.began, s.from = time.Now(), s.run.log.Len()
	s.run.settler.Act()
	s.run.notes.All = nil
	s.run.recorder.Forget()
	s.run.habits.Mark()
}

// Learnt returns the writes that recurred since the mark while the cluster was otherwise quiet.
// Habits are only looked for if the session was not given any by Know.
func (s *Session) Learnt(enough time.Duration) []observe.Learnt { return s.run.habits.Learnt(enough) }

// Know sets the known habits: writes that recur without end, and that do not count as activity.
// Further habits are not looked for.
func (s *Session) Know(known map[observe.Habit]bool) { s.run.habits.Know(known) }

// Began returns the time of the last mark.
func (s *Session) Began() time.Time { return s.began }

// Act records an action of this tool in the timeline. The quiet time is counted again from then
// on.
func (s *Session) Act(format string, args ...any) {
	s.run.notes.Add(format, args...)
	s.run.settler.Act()
}

// Activity is the recent activity of the operator.
type Activity struct {
	// Quiet is the time since the last change that is not a habit. A write without effect is not a
	// change.
	Quiet time.Duration
	// Requests is the number of recent requests of the operator, other than watches and leader
	// election.
	Requests int
	// Last are the last five of these requests, a line each.
	Last []string
}

// Activity summarizes the activity since the mark; requests are counted if they ended within
// the last while.
func (s *Session) Activity(while time.Duration) Activity {
	locks := s.run.log.LockKeys()
	a := Activity{}
	since := time.Now().Add(-while)
	for _, r := range s.run.log.Since(s.from) {
		reads := (r.Verb == "get" || r.Verb == "list") && r.Resource != "" && !slices.Contains(observe.Election, r.Resource) && !locks[observe.NameKey(r.Resource, r.Namespace, r.Name)]
		writes := r.Writes(locks)
		if !reads && !writes {
			continue
		}
		ended := r.Time.Add(time.Duration(r.Seconds * float64(time.Second)))
		if ended.After(since) {
			a.Requests++
			a.Last = append(a.Last, r.String())
		}
	}
	a.Last = a.Last[max(0, len(a.Last)-5):]
	a.Quiet = s.run.habits.Quiet(s.run.settler.Began, time.Now(), while)
	return a
}

// State returns the normalized state of all objects, except for objects that leaveOut selects.
func (s *Session) State(leaveOut func(resource string, object *unstructured.Unstructured) bool) observe.State {
	objects := slices.DeleteFunc(s.run.recorder.Objects(), func(v observe.Version) bool { return leaveOut(v.Resource, v.Object) })
	return observe.Names{}.State(objects, s.run.log.LockKeys())
}

// Find returns the last seen version of an object, or nil if the object does not exist.
func (s *Session) Find(resource, namespace, name string) *unstructured.Unstructured {
	return s.run.recorder.Find(workload.Target{Resource: resource, Namespace: namespace, Name: name})
}

// Failures returns a line for each failure of the operator since Start: panics, lines that
// match FailOnLog, and unexpected exits. It returns nil while a stack trace is still being
// written.
func (s *Session) Failures() []string {
	if s.run.operator.Output.Tracing() {
		return nil // The origin of the panic is in the next lines.
	}
	lines := s.run.operator.Output.Failures()
	ends := s.run.operator.AllLastWords()
	if s.fault.Effects().BreaksConnections {
		ends = nil
	}
	for _, end := range ends[min(s.excused, len(ends)):] {
		lines = append(lines, judge.EndedByItself+end)
	}
	return lines
}

// Standing returns the differences that persist, and leaves out differences in objects that
// change all the time.
func (s *Session) Standing(all []state.Difference) []state.Difference {
	versions, _ := s.run.recorder.All()
	return observe.Standing(all, observe.Names{}, versions, time.Now().Add(-observe.RestlessFor))
}

// Advice returns lines for users on excluding fields that change all the time.
func (s *Session) Advice() []string { return s.run.settler.Advice() }

// MayNot describes the requests of the operator that RBAC forbids, and how to allow them;
// empty: there are none.
func (s *Session) MayNot() string {
	asked := lab.Forbidden(s.run.log.Since(0))
	if len(asked) == 0 {
		return ""
	}
	return lab.MayNot(asked)
}

// Refused returns a line for each write since the mark whose last try the API server refused as
// invalid (422).
func (s *Session) Refused() []string {
	return judge.Invalid(s.run.log.Since(s.from), s.run.log.LockKeys())
}

// Strangers returns an error if a client other than the known field managers has written to
// objects since the mark: then a change may not be the doing of the operator.
func (s *Session) Strangers(known map[string]bool) error {
	// An object that the operator has written still counts as the operator's if another client
	// writes to it later.
	o := &observe.Record{Requests: s.run.log.Since(0)}
	o.Versions, _ = s.run.recorder.All()
	return judge.Strangers(s.run.injector.Rules.List(), o, &baseline.Baseline{Managers: known})
}

// Managers returns the field managers of all objects, including objects deleted since the mark.
func (s *Session) Managers() map[string]bool {
	o := &observe.Record{}
	o.Versions, _ = s.run.recorder.All()
	all := map[string]bool{}
	for _, manager := range o.Managers() {
		all[manager] = true
	}
	return all
}

// Crashed returns the crash of a component of the sandbox, or nil.
func (s *Session) Crashed() error {
	select {
	case err := <-s.run.sandbox.Crashed:
		return err
	default:
		return nil
	}
}

// Broken returns a line for each built-in invariant that was broken since the mark.
func (s *Session) Broken() ([]string, error) {
	versions, err := s.run.recorder.All()
	var lines []string
	for _, p := range judge.BrokenSince(s.began, nil, versions) {
		lines = append(lines, p.Lines...)
	}
	return lines, err
}

// Output returns the last lines of the output of the operator.
func (s *Session) Output(lines int) []string { return s.run.operator.Output.Tail(lines) }

// Timeline returns the writes, deletions and notes since the mark.
func (s *Session) Timeline() []results.Moment {
	o := &judge.Outcome{Record: observe.Record{Began: s.began, Notes: s.run.notes.All, Requests: s.run.log.Since(s.from)}}
	versions, _ := s.run.recorder.All()
	for _, v := range versions {
		if !v.Time.Before(s.began) {
			o.Versions = append(o.Versions, v)
		}
	}
	return timeline(o, &baseline.Baseline{Locks: s.run.log.LockKeys()})
}

// Objects returns the number of present objects.
func (s *Session) Objects() int { return s.run.recorder.Count() }

// Scope returns the census of objects and fields that a session is judged by. leaveOut selects
// objects that are not judged, and history is the reason shown for them; the fields of mask are
// not compared.
func (s *Session) Scope(leaveOut func(resource string, object *unstructured.Unstructured) bool, history string, mask *state.Mask) *results.Scope {
	c := baseline.NewCensus(observe.Names{}, s.run.log.LockKeys())
	objects := s.run.recorder.Objects()
	for i := range objects {
		if v := &objects[i]; leaveOut(v.Resource, v.Object) {
			c.Leave(v.Resource, history, 0)
		} else {
			c.Add(v, mask)
		}
	}
	return c.Scope(s.run.recorder.Kinds(), s.run.recorder.Never, mask)
}
