// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"tidekeeper.dev/tidekeeper/internal/workload"
)

// clockSkew is how far the clock of another machine may be ahead of this machine: kubectl
// rollout restart writes the time of the machine that it runs on. A time further ahead
// means nothing.
const clockSkew = 5 * time.Minute

// restartedFor returns when the target was restarted, if that was for the tick or later.
func restartedFor(t *workload.State, tick, now time.Time) (at time.Time, ok bool) {
	return notBefore(tick, t.RestartedAt, now)
}

// sentFor reports whether the tick or a later tick was sent to the target, even if the
// restart was reverted since.
func sentFor(t *workload.State, tick, now time.Time) bool {
	_, ok := notBefore(tick, t.LastTick, now)
	return ok
}

// wasSent reports whether this very tick was the last that was sent to the target. A
// later tick says nothing of it: a clock may have been set back since.
func wasSent(t *workload.State, tick time.Time) bool {
	at, ok := parseTime(t.LastTick)
	return ok && at.Equal(tick)
}

// marks returns the times at which the target was restarted according to its annotations, except times
// in the future.
func marks(t *workload.State, now time.Time) (times []time.Time) {
	for _, mark := range []string{t.RestartedAt, t.LastTick} {
		if at, ok := parseTime(mark); ok && !at.After(now.Add(clockSkew)) {
			times = append(times, at.UTC())
		}
	}
	return times
}

// notBefore parses a time that anyone may have written, and reports whether it is the
// tick or later. It counts only if it is not in the future, by more than clocks may
// differ: otherwise no restart that has happened has written it.
func notBefore(tick time.Time, text string, now time.Time) (at time.Time, ok bool) {
	at, ok = parseTime(text)
	if !ok || at.Before(tick) || at.After(now.Add(clockSkew)) && !at.Equal(tick) {
		return time.Time{}, false
	}
	return at, true
}

func parseTime(text string) (at time.Time, ok bool) {
	if text == "" {
		return time.Time{}, false // The error would have to be made up, for each decision.
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}
