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
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/words"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// Session is an operator in a sandbox of its own, for tools that judge it by something
// other than a workload.
type Session struct {
	run *run
	end func()
	// from is the first request, and began the time, of what is looked at.
	from  int
	began time.Time
	// excused is how many ends of the operator's process were rightly so.
	excused int
	// fault disturbs the present work of the operator; nil: none.
	fault *faults.Fault
}

// Begin makes a session with that name. Prepare must have been called.
func (e *Explorer) Begin(ctx context.Context, name string) (*Session, error) {
	r, end, err := e.open(ctx, name, nil, nil, setting{})
	if err != nil {
		return nil, err
	}
	// An edit may well have the operator's writes refused, for good.
	r.log.Habits = nil
	s := &Session{run: r, end: end}
	s.Mark()
	return s, nil
}

// End ends the operator and the sandbox.
func (s *Session) End() { s.end() }

// Client reaches the API server as the administrator, not through the proxy.
func (s *Session) Client() dynamic.Interface { return s.run.recorder.Client }

// Start starts the operator, or another process of it.
func (s *Session) Start() error {
	s.run.operator.Close()
	s.run.operator.Operator, s.excused = s.run.operator.Another(), 0
	return s.run.operator.Start()
}

// Kill kills the operator, and returns when it has ended.
func (s *Session) Kill() { s.run.operator.Close() }

// Watched returns the resources that the operator watches.
func (s *Session) Watched() []string { return s.run.settler.Watches() }

// Mark begins something new: what is looked at is what comes from now on, and of what was before
// nothing is kept but the objects that there are.
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

// Learnt returns what was done again and again while all was at rest since the mark, if that was
// looked for.
func (s *Session) Learnt(enough time.Duration) []observe.Learnt { return s.run.habits.Learnt(enough) }

// Know has habits known that were learnt, so that they are no unrest. Others are not looked for.
func (s *Session) Know(known map[observe.Habit]bool) { s.run.habits.Know(known) }

// Began is when the last mark was made.
func (s *Session) Began() time.Time { return s.began }

// Act notes something that the kit does. The time of quiet begins again with it.
func (s *Session) Act(format string, args ...any) {
	s.run.notes.Add(format, args...)
	s.run.settler.Act()
}

// Activity is the recent activity of the operator.
type Activity struct {
	// Quiet is for how long nothing but habits has changed anything. A write that changes nothing
	// does not count.
	Quiet time.Duration
	// Requests are the operator's that are not watches, and do not elect a leader, in
	// the last while.
	Requests int
	// Last are the last of them, a line each.
	Last []string
}

// Activity returns what has happened since the mark, and counts the requests of the last
// while.
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

// State describes all objects that are not left out.
func (s *Session) State(leaveOut func(resource string, object *unstructured.Unstructured) bool) observe.State {
	objects := slices.DeleteFunc(s.run.recorder.Objects(), func(v observe.Version) bool { return leaveOut(v.Resource, v.Object) })
	return observe.Names{}.State(objects, s.run.log.LockKeys())
}

// Find returns an object as it was last seen, nil if it is not there.
func (s *Session) Find(resource, namespace, name string) *unstructured.Unstructured {
	return s.run.recorder.Find(workload.Target{Resource: resource, Namespace: namespace, Name: name})
}

// Failures returns what the operator did wrong since it was started: panics, lines that
// must not be in its output, and its end.
func (s *Session) Failures() []string {
	if s.run.operator.Output.Tracing() {
		return nil // Where it came from is in the next lines.
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

// Standing are the differences that do not come and go.
func (s *Session) Standing(all []state.Difference) []state.Difference {
	versions, _ := s.run.recorder.All()
	return observe.Standing(all, observe.Names{}, versions, time.Now().Add(-observe.RestlessFor))
}

// Advice says how all may come to rest though something changes all the time.
func (s *Session) Advice() []string { return s.run.settler.Advice() }

// MayNot says what the operator has asked for and may not, and what to do; empty: nothing.
func (s *Session) MayNot() string {
	asked := lab.Forbidden(s.run.log.Since(0))
	if len(asked) == 0 {
		return ""
	}
	return lab.MayNot(asked)
}

// Refused returns the writes of the operator since the mark that the API server has refused at
// last because of what they are (422).
func (s *Session) Refused() []string {
	return judge.Invalid(s.run.log.Since(s.from), s.run.log.LockKeys())
}

// Strangers is an error if another client has had a part in the session since the mark, other than the
// known managers of fields.
func (s *Session) Strangers(known map[string]bool) error {
	// An object that the operator has written stays its own, also if another client writes to it later.
	o := &observe.Record{Requests: s.run.log.Since(0)}
	o.Versions, _ = s.run.recorder.All()
	return judge.Strangers(s.run.injector.Rules.List(), o, &baseline.Baseline{Managers: known})
}

// Managers returns the managers of fields of all objects, those that have gone since the mark included.
func (s *Session) Managers() map[string]bool {
	o := &observe.Record{}
	o.Versions, _ = s.run.recorder.All()
	all := map[string]bool{}
	for _, manager := range o.Managers() {
		all[manager] = true
	}
	return all
}

// Crashed returns the crash of a component of the sandbox, nil if there was none.
func (s *Session) Crashed() error {
	select {
	case err := <-s.run.sandbox.Crashed:
		return err
	default:
		return nil
	}
}

// Broken returns the invariants of all clusters that did not hold since the mark.
func (s *Session) Broken() ([]string, error) {
	versions, err := s.run.recorder.All()
	var lines []string
	for _, p := range judge.BrokenSince(s.began, nil, versions) {
		lines = append(lines, p.Lines...)
	}
	return lines, err
}

// Output returns how the output of the operator ends.
func (s *Session) Output(lines int) []string { return s.run.operator.Output.Tail(lines) }

// Timeline returns the events since the mark.
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

// Objects returns how many objects there are.
func (s *Session) Objects() int {
	s.run.recorder.Mu.Lock()
	defer s.run.recorder.Mu.Unlock()
	return len(s.run.recorder.Current)
}

// Indent writes lines below another.
func Indent(lines []string) string { return words.Indent(lines) }

// OneLine makes a line of a text.
func OneLine(text string) string { return words.OneLine(text) }

// Scope says by what a session is judged, beside what others leave out and mask: nil leaves out
// nothing.
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
