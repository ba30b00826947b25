// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// starter chooses the tick (the scheduled time) for which a restart starts.
type starter struct {
	state    *state
	triggers *triggers
	gates    gates
	query    *queryGate
	budget   *budgetGate
	misses   *misses
	eviction *eviction
	wake     *alarm
	waiting  *waiting
	// leadingSince is the time at which this process became the leader.
	leadingSince time.Time
}

// choice is the result of choosing the tick (the scheduled time) for which a restart starts.
type choice struct {
	// start is the tick (the scheduled time) for which a restart starts; nil if no restart starts
	// now.
	start *candidate
	// idle is true if no restart is due.
	idle  bool
	needs Need
}

// choose chooses one of the due restarts to start. It also records the due restarts that must not
// start. If a requested restart and a restart according to the schedule can both start, a single
// restart serves both. While these restarts wait, they are treated separately.
func (s *starter) choose() choice {
	blocked := s.gates.first(s.state.now, s.triggers.lastDue(s.state.now))
	var due []*candidate
	for _, c := range []*candidate{s.triggers.request.candidate(), s.triggers.schedule.candidate()} {
		if c != nil && !s.resolved(c, blocked) {
			due = append(due, c)
		}
	}
	if len(due) == 0 {
		// A restart for the schedule or a request also replaces pods with old content and pods that
		// are too old. Check the triggers for these pods only if there is no such restart.
		for _, c := range []*candidate{s.triggers.change.candidate(), s.triggers.age.candidate()} {
			if c != nil && len(due) == 0 {
				due = append(due, c)
			}
		}
	}
	if len(due) == 0 {
		return choice{idle: true}
	}
	needs := NeedNothing
	if blocked == nil && !s.budget.take(s.waitingSince(due)) {
		if blocked = s.query.last(firstDue(due)); blocked == nil {
			blocked = s.budget.blocks()
		}
		needs = NeedSlot
	}
	if blocked != nil {
		s.wait(due, blocked)
		return choice{needs: needs}
	}
	c := due[0]
	if need := s.triggers.of(c.trigger).confirm(); need != NeedNothing {
		return choice{needs: need}
	}
	if len(due) > 1 {
		first := due[1]
		if first.tick.After(c.tick) {
			c, first = first, c
		}
		s.resolve(first, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonSuperseded, "one restart serves this tick and the tick of "+formatTime(c.tick))
	}
	if evicts(s.state.spec) {
		return s.chooseEviction(c)
	}
	return choice{start: c}
}

// chooseEviction chooses the given candidate for a restart by eviction. If such a restart would
// evict no pod, it records the candidate as skipped instead. If pods of a target whose changes
// cause no events are not ready, the candidate waits.
func (s *starter) chooseEviction(c *candidate) choice {
	if need := s.eviction.confirm(c.due); need != NeedNothing {
		return choice{needs: need}
	}
	if b := s.eviction.unready(); b != nil {
		s.wait([]*candidate{c}, b)
		return choice{}
	}
	if !s.eviction.replaces(c) {
		s.resolve(c, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonAlreadyRestarted, fmt.Sprintf("all pods of %s were created since", s.state.target))
		return choice{}
	}
	return choice{start: c}
}

// goneWait describes why a tick has waited, given the reason of the wait in the status. It returns
// "" unless the reason is a freeze, a query or the budget. Once these no longer block the restart,
// only the status shows that the tick has waited.
func goneWait(reason string, b *budgetGate) string {
	switch reason {
	case tidekeeperv1.ReasonFrozen:
		return "a Freeze was in force"
	case tidekeeperv1.ReasonClosedByQuery:
		return "closed by a query of the manager's operator"
	case tidekeeperv1.ReasonBudgetExhausted:
		return b.usedUp("was")
	default:
		return ""
	}
}

// resolved records the outcome of a due restart that must not start, and returns true. It returns
// false for any other restart.
func (s *starter) resolved(c *candidate, blocked *blocker) bool {
	late, waited, gone := s.state.now.After(c.deadline), "", ""
	if late && blocked == nil {
		if blocked = s.query.last(c.due); blocked == nil {
			waited = s.state.waitedFor()
			gone = goneWait(waited, s.budget)
		}
	}
	switch {
	case s.state.restarted(c.tick):
		s.resolve(c, tidekeeperv1.OutcomeSkipped, tidekeeperv1.ReasonAlreadyRestarted, fmt.Sprintf("%s has been restarted since", s.state.target))
	case blocked != nil && blocked.permanent:
		s.miss(c, tidekeeperv1.OutcomeSkipped, blocked.reason, blocked.message)
	case late && blocked != nil:
		s.miss(c, tidekeeperv1.OutcomeMissed, blocked.reason, "not started before the deadline: "+blocked.message)
	case late && gone != "":
		s.miss(c, tidekeeperv1.OutcomeMissed, waited, "not started before the deadline: "+gone)
	case late && c.due.Before(s.leadingSince) && c.deadline.Before(s.leadingSince):
		s.miss(c, tidekeeperv1.OutcomeMissed, tidekeeperv1.ReasonDeadlineExceeded, "no manager was running before the deadline")
	case late:
		s.miss(c, tidekeeperv1.OutcomeMissed, tidekeeperv1.ReasonDeadlineExceeded, fmt.Sprintf(
			"a manager was running, but did not start the restart within %d s of the time at which it was due", s.state.spec.StartingDeadlineSeconds))
	default:
		return false
	}
	return true
}

// resolve records the outcome of a tick (a scheduled time) that ends without a restart.
func (s *starter) resolve(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) {
	s.misses.recordEarlier(c)
	s.misses.history.record(recordOf(c, outcome, reason, message))
	s.triggers.pass(c)
}

// miss records that no restart could start for a tick. If the schedule misses one tick after
// another, the record is postponed. See [misses.quietUntil].
func (s *starter) miss(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) {
	if c.trigger == tidekeeperv1.TriggerRequest {
		s.resolve(c, outcome, reason, message)
		return
	}
	if quiet := s.misses.quietUntil(); !quiet.IsZero() {
		s.wake.set(quiet)
		if next, ok := s.triggers.schedule.ticks.Next(c.tick); ok && s.gates.first(s.state.now, s.triggers.lastDue(s.state.now)) == nil {
			due, _ := s.triggers.schedule.times(next)
			s.wake.set(due)
		}
		return
	}
	s.misses.recordFor(c, outcome, reason, message)
	s.triggers.pass(c)
}

// waitingSince returns the time since which the due restarts count as waiting for a slot. For a
// requested restart this is now, since its author chooses the requested time. For any other restart
// it is the due time, but not earlier than this ScheduledRestart's last history entry.
func (s *starter) waitingSince(due []*candidate) time.Time {
	since := s.state.now
	for _, c := range due {
		if c.trigger != tidekeeperv1.TriggerRequest {
			since = c.due
		}
	}
	if !since.Before(s.state.now) {
		return since
	}
	if last, ok := s.misses.history.lastRecorded(); ok && last.After(since) && last.Before(s.state.now) {
		since = last
	}
	return since
}

// firstDue returns the earliest due time of the candidates.
func firstDue(due []*candidate) (first time.Time) {
	for _, c := range due {
		if first.IsZero() || c.due.Before(first) {
			first = c.due
		}
	}
	return first
}

// wait records that restarts for due ticks wait. blocked is the reason for which they cannot start.
// Of the schedule's due ticks, only the latest waits; the earlier ticks are missed.
func (s *starter) wait(due []*candidate, blocked *blocker) {
	s.waiting.blocker = blocked
	s.wake.setFor(blocked)
	quiet := s.misses.quietUntil()
	for _, c := range due {
		if c.deadline.IsZero() {
			continue
		}
		if s.waiting.until.IsZero() || c.deadline.Before(s.waiting.until) {
			s.waiting.until = c.deadline
		}
		s.wake.set(later(c.deadline.Add(time.Second), quiet))
		if c.trigger == tidekeeperv1.TriggerRequest {
			continue
		}
		if c.earlier > 0 && quiet.IsZero() {
			s.misses.recordWaiting(c, blocked)
			s.triggers.schedule.leave(c.tick)
		}
		if next, ok := s.triggers.schedule.ticks.Next(c.tick); ok {
			start, _ := s.triggers.schedule.times(next)
			s.wake.set(later(start, s.misses.quietUntil()))
		}
	}
}
