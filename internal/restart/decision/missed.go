// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

const (
	// missesAtOnce is the number of consecutive missed ticks (scheduled times of restarts) that are
	// recorded immediately.
	missesAtOnce = 3
	// firstQuiet and lastQuiet are the shortest and the longest interval between records of missed
	// ticks, after missesAtOnce ticks in a row were missed. The interval doubles with each record.
	firstQuiet = time.Minute
	lastQuiet  = 15 * time.Minute
)

// misses records the ticks (scheduled times) for which no restart could start, and counts
// consecutive records of such ticks. If a schedule misses tick after tick, the missed ticks are
// recorded at growing intervals. See [misses.quietUntil].
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

// recordFor records that no restart could start for the tick of a candidate. If the earlier ticks
// of the candidate were missed for the same reason, the same history entry includes them.
func (m *misses) recordFor(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) {
	record := recordOf(c, outcome, reason, message)
	if reason != tidekeeperv1.ReasonDeadlineExceeded && m.witnessed(c) {
		record.EarlierTicks = int32(c.earlier)
	} else {
		m.recordEarlier(c)
	}
	m.record(record)
}

// recordEarlier records the undecided ticks of the schedule before the candidate's tick in a single
// history entry. These ticks get no restarts of their own.
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

// recordWaiting records that the earlier ticks of a candidate were missed, while the candidate
// itself still waits. blocked is the reason for which its restart cannot start.
func (m *misses) recordWaiting(c *candidate, blocked *blocker) {
	m.record(earlierTicks(c, blocked.reason, "not started before a later tick was due: "+blocked.message))
}

// earlierTicks returns the history entry for the ticks of the schedule that were due before the
// candidate's tick.
func earlierTicks(c *candidate, reason, message string) tidekeeperv1.RestartRecord {
	return tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.before}, Trigger: c.trigger, Outcome: tidekeeperv1.OutcomeMissed,
		Reason: reason, Message: message, EarlierTicks: int32(c.earlier - 1),
	}
}

// witnessed reports whether the tick (the scheduled time) of a candidate, and all ticks before it
// that are also due, came after this process became the leader.
func (m *misses) witnessed(c *candidate) bool { return !c.first.Before(m.leadingSince) }

// end resets the number of consecutive records of missed ticks.
func (m *misses) end() { m.state.status.ConsecutiveMisses = 0 }

// quietUntil returns the time until which missed ticks are not recorded; zero if they may be
// recorded now. Each record costs a status write and an event, and a schedule that can never start
// a restart may have a tick every minute.
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
// is missed, it is therefore not recorded separately. offset is the time from a tick to the start
// of its restart.
func (m *misses) goOn(offset time.Duration) bool {
	status := m.state.status
	next, quiet := status.NextScheduleTime, m.quietUntil()
	return status.Active == nil && next != nil && !quiet.IsZero() && next.Add(offset).Before(quiet)
}

// recordOf returns the history entry for a tick (a scheduled time) that ends without a restart.
func recordOf(c *candidate, outcome tidekeeperv1.Outcome, reason, message string) tidekeeperv1.RestartRecord {
	return tidekeeperv1.RestartRecord{
		ScheduledTime: metav1.Time{Time: c.tick}, Trigger: c.trigger, Outcome: outcome, Reason: reason, Message: message,
	}
}
