// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

const (
	// missesAtOnce is the number of consecutive missed ticks that are recorded immediately.
	missesAtOnce = 3
	// After missesAtOnce consecutive missed ticks, later missed ticks are recorded together, at
	// intervals that double from firstQuiet to lastQuiet.
	firstQuiet = time.Minute
	lastQuiet  = 15 * time.Minute
)

// misses records the ticks for which no restart could start, and counts consecutive records of such
// ticks. If a schedule misses tick after tick, the missed ticks are recorded at growing intervals.
// See [misses.quietUntil].
type misses struct {
	state   *state
	history *history
	// leadingSince is the time at which this process became the leader.
	leadingSince time.Time
}

// record adds a history entry for missed ticks, and increments the number of consecutive records in
// the status.
func (m *misses) record(record tidekeeperv1.RestartRecord) {
	m.history.record(record)
	m.state.status.ConsecutiveMisses++
}

// recordFor records the tick of a candidate for which no restart could start. Its earlier ticks are
// included in the same history entry if they were missed for the same reason.
func (m *misses) recordFor(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) {
	record := recordOf(c, outcome, reason, message)
	if reason != tidekeeperv1.ReasonDeadlineExceeded && m.witnessed(c) {
		record.EarlierTicks = int32(c.earlier)
	} else {
		m.recordEarlier(c)
	}
	m.record(record)
}

// recordEarlier records the undecided ticks before a candidate in a single history entry, since no
// restart makes up for these ticks.
func (m *misses) recordEarlier(c *candidate) {
	if c.earlier == 0 {
		return
	}
	reason, message := tidekeeperv1.ReasonSuperseded, "a later tick was due as well"
	if waited := m.state.waitedFor(); waited != "" && m.witnessed(c) {
		reason, message = waited, "not started before a later tick was due"
	}
	m.history.record(earlierTicks(c, reason, message))
}

// recordWaiting records the ticks before a candidate that waits for a blocker as missed.
func (m *misses) recordWaiting(c *candidate, blocked *blocker) {
	m.record(earlierTicks(c, blocked.reason, "not started before a later tick was due: "+blocked.message))
}

// earlierTicks returns the history entry for the ticks before a candidate.
func earlierTicks(c *candidate, reason, message string) tidekeeperv1.RestartRecord {
	return tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.before}, Trigger: c.trigger, Outcome: tidekeeperv1.OutcomeMissed,
		Reason: reason, Message: message, EarlierTicks: int32(c.earlier - 1),
	}
}

// witnessed reports whether the tick of a candidate and all its earlier ticks came after this
// process became the leader.
func (m *misses) witnessed(c *candidate) bool { return !c.first.Before(m.leadingSince) }

// end resets the number of consecutive missed ticks.
func (m *misses) end() { m.state.status.ConsecutiveMisses = 0 }

// quietUntil returns the time before which no further missed ticks are recorded; zero if they may
// be recorded now. Each history entry costs a status write and an event, and a schedule that can
// never start a restart may tick every minute.
func (m *misses) quietUntil() time.Time {
	n := m.state.status.ConsecutiveMisses - missesAtOnce
	if n < 0 {
		return time.Time{}
	}
	last, ok := m.history.lastRecorded()
	if !ok {
		return time.Time{}
	}
	until := last.Add(min(firstQuiet<<min(n, 10), lastQuiet))
	if last.After(m.state.now) || !until.After(m.state.now) {
		return time.Time{}
	}
	return until
}

// goOn reports whether the next tick is due before missed ticks may be recorded again. If that tick
// is missed, it is not recorded either. offset is the time from a tick to the start of its restart.
func (m *misses) goOn(offset time.Duration) bool {
	status := m.state.status
	next, quiet := status.NextScheduleTime, m.quietUntil()
	return status.Active == nil && next != nil && !quiet.IsZero() && next.Add(offset).Before(quiet)
}

// recordOf returns the history entry of a candidate that ends without a restart.
func recordOf(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) tidekeeperv1.RestartRecord {
	return tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.tick}, Trigger: c.trigger, Outcome: outcome, Reason: reason, Message: message,
	}
}
