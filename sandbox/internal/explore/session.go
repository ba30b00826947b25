// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

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
	// fault disturbs what the operator does now; nil: none.
	fault *Fault
}

// Begin makes a session with that name. Prepare must have been called.
func (e *Explorer) Begin(ctx context.Context, name string) (*Session, error) {
	r, end, err := e.open(ctx, name, nil, nil, setting{})
	if err != nil {
		return nil, err
	}
	// An edit may well have the operator's writes refused, for good.
	r.log.habits = nil
	s := &Session{run: r, end: end}
	s.Mark()
	return s, nil
}

// End ends the operator and the sandbox.
func (s *Session) End() { s.end() }

// Client reaches the API server as the administrator, not through the proxy.
func (s *Session) Client() dynamic.Interface { return s.run.recorder.client }

// Start starts the operator, or another process of it if there was one.
func (s *Session) Start() error {
	s.run.operator.close()
	s.run.operator.operator, s.excused = s.run.operator.another(), 0
	return s.run.operator.start()
}

// Kill kills the operator, and returns when it has ended.
func (s *Session) Kill() { s.run.operator.close() }

// Watched returns the resources that the operator watches.
func (s *Session) Watched() []string { return s.run.settler.watches() }

// Mark begins something new: what is looked at is what comes from now on, and of what was before
// nothing is kept but the objects that there are.
func (s *Session) Mark() {
	if s.fault.effects().BreaksConnections {
		s.excused = len(s.run.operator.ends())
	}
	s.fault = nil
	s.began, s.from = time.Now(), s.run.log.len()
	s.run.settler.act()
	s.run.notes.all = nil
	s.run.recorder.forget()
	s.run.habits.mark()
}

// Learnt returns what was done again and again while all was at rest since the mark, if that was
// looked for.
func (s *Session) Learnt(enough time.Duration) []Learnt { return s.run.habits.learnt(enough) }

// Know has habits known that were learnt, so that they are no unrest. Others are not looked for.
func (s *Session) Know(known map[Habit]bool) { s.run.habits.know(known) }

// Mask masks what changes with a habit.
func (l *Learnt) Mask(m *state.Mask) []state.Masked { return l.mask(anonymizer{}, m) }

// Began is when the last mark was made.
func (s *Session) Began() time.Time { return s.began }

// Act notes something that the kit does. The time of quiet begins again with it.
func (s *Session) Act(format string, args ...any) {
	s.run.notes.add(format, args...)
	s.run.settler.act()
}

// Activity is what has happened since the mark.
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
	locks := s.run.log.lockKeys()
	a := Activity{}
	since := time.Now().Add(-while)
	for _, r := range s.run.log.since(s.from) {
		reads := (r.Verb == "get" || r.Verb == "list") && r.Resource != "" && !slices.Contains(election, r.Resource) && !locks[nameKey(r.Resource, r.Namespace, r.Name)]
		writes := r.writes(locks)
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
	a.Quiet = s.run.habits.quiet(s.run.settler.began, time.Now(), while)
	return a
}

// lockKeys returns the objects by which the operator elects its leader, beside Leases.
func (l *requestLog) lockKeys() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make(map[string]bool, len(l.locks))
	for key := range l.locks {
		keys[key] = true
	}
	return keys
}

// State describes all objects, but those that are left out.
func (s *Session) State(leaveOut func(resource string, object *unstructured.Unstructured) bool) State {
	objects := slices.DeleteFunc(s.run.recorder.objects(), func(v Version) bool { return leaveOut(v.Resource, v.Object) })
	return anonymizer{}.state(objects, s.run.log.lockKeys())
}

// Find returns an object as it was last seen, nil if it is not there.
func (s *Session) Find(resource, namespace, name string) *unstructured.Unstructured {
	return s.run.recorder.find(Target{Resource: resource, Namespace: namespace, Name: name})
}

// Failures returns what the operator did wrong since it was started: panics, lines that
// must not be in its output, and its end.
func (s *Session) Failures() []string {
	if s.run.operator.output.tracing() {
		return nil // Where it came from is in the next lines.
	}
	lines := s.run.operator.output.failures()
	ends := s.run.operator.allLastWords()
	if s.fault.effects().BreaksConnections {
		ends = nil
	}
	for _, end := range ends[min(s.excused, len(ends)):] {
		lines = append(lines, endedByItself+end)
	}
	return lines
}

// Standing are those of some differences that do not come and go.
func (s *Session) Standing(all []state.Difference) []state.Difference {
	versions, _ := s.run.recorder.all()
	return standing(all, anonymizer{}, versions, time.Now().Add(-restlessFor))
}

// Advice says how all may come to rest though something changes all the time.
func (s *Session) Advice() []string { return s.run.settler.advice() }

// MayNot says what the operator has asked for and may not, and what to do; empty: nothing.
func (s *Session) MayNot() string {
	asked := forbidden(s.run.log.since(0))
	if len(asked) == 0 {
		return ""
	}
	return mayNot(asked)
}

// Refused returns the writes of the operator since the mark that the API server has refused at
// last because of what they are (422).
func (s *Session) Refused() []string { return invalid(s.run.log.since(s.from), s.run.log.lockKeys()) }

// invalid returns those of some requests, each once.
func invalid(requests []Request, locks map[string]bool) []string {
	last := map[Call]*Request{}
	var order []Call
	for i := range requests {
		r := &requests[i]
		if !r.writes(locks) || r.Fault != "" {
			continue
		}
		call := Call{Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
		if last[call] == nil {
			order = append(order, call)
		}
		last[call] = r
	}
	var lines []string
	for _, call := range order {
		if last[call].Upstream == http.StatusUnprocessableEntity {
			lines = append(lines, last[call].String())
		}
	}
	return lines
}

// Crashed returns the crash of a component of the sandbox, nil if there was none.
func (s *Session) Crashed() error {
	select {
	case err := <-s.run.sandbox.crashed:
		return err
	default:
		return nil
	}
}

// Broken returns the invariants of all clusters that did not hold since the mark.
func (s *Session) Broken() ([]string, error) {
	versions, err := s.run.recorder.all()
	var lines []string
	for _, p := range brokenSince(s.began, nil, versions) {
		lines = append(lines, p.Lines...)
	}
	return lines, err
}

// Output returns how the output of the operator ends.
func (s *Session) Output(lines int) []string { return s.run.operator.output.tail(lines) }

// Timeline returns what has happened since the mark.
func (s *Session) Timeline() []results.Moment {
	o := &Outcome{Began: s.began, Notes: s.run.notes.all, Requests: s.run.log.since(s.from)}
	versions, _ := s.run.recorder.all()
	for _, v := range versions {
		if !v.Time.Before(s.began) {
			o.Versions = append(o.Versions, v)
		}
	}
	return timeline(o, &Baseline{Locks: s.run.log.lockKeys()})
}

// Objects returns how many objects there are.
func (s *Session) Objects() int {
	s.run.recorder.mu.Lock()
	defer s.run.recorder.mu.Unlock()
	return len(s.run.recorder.current)
}

// Indent writes lines below another.
func Indent(lines []string) string { return indent(lines) }

// OneLine makes a line of a text.
func OneLine(text string) string { return oneLine(text) }
