// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// clockSkew is the tolerated clock skew of other machines, since kubectl rollout restart writes the
// time of the machine on which it runs. Times that are further in the future are ignored.
const clockSkew = 5 * time.Minute

// restartedFor returns the time at which the target was restarted for the given tick (scheduled
// time) or a later one; false if it was not.
func restartedFor(t *workload.State, tick, now time.Time) (at time.Time, ok bool) {
	return notBefore(tick, t.RestartedAt, now)
}

// sentFor reports whether the given tick (scheduled time) or a later one was sent to the target,
// even if the restart has since been reverted.
func sentFor(t *workload.State, tick, now time.Time) bool {
	_, ok := notBefore(tick, t.LastTick, now)
	return ok
}

// wasSent reports whether the given tick (scheduled time) was the last tick that was sent to the
// target. If a later tick was sent, the given tick need not have been sent, since a clock may have
// been set back.
func wasSent(t *workload.State, tick time.Time) bool {
	at, ok := parseTime(t.LastTick)
	return ok && at.Equal(tick)
}

// marks returns the past times at which the target was restarted, according to its annotations.
func marks(t *workload.State, now time.Time) (times []time.Time) {
	for _, mark := range []string{t.RestartedAt, t.LastTick} {
		if at, ok := parseTime(mark); ok && !at.After(now.Add(clockSkew)) {
			times = append(times, at.UTC())
		}
	}
	return times
}

// notBefore parses a time from an annotation, which any client may write. It returns true if the
// time is the tick or later. A time after the tick that is in the future, beyond the clock skew,
// does not count, since no past restart can have written it.
func notBefore(tick time.Time, text string, now time.Time) (at time.Time, ok bool) {
	at, ok = parseTime(text)
	if !ok || at.Before(tick) || at.After(now.Add(clockSkew)) && !at.Equal(tick) {
		return time.Time{}, false
	}
	return at, true
}

func parseTime(text string) (at time.Time, ok bool) {
	if text == "" {
		return time.Time{}, false // Parsing "" would create an error message in every decision.
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}
