// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"
)

// wakeup is an entry of the queue of a forecast's events: the end of a target's rollout, or a
// decision about a ScheduledRestart. A wakeup is outdated if another time was set later for the
// same target or ScheduledRestart. A forecast processes millions of wakeups, so they are small and
// contain no pointers.
type wakeup struct {
	// at is the time in nanoseconds since 1970.
	at int64
	// index is the index of a ScheduledRestart in [simulation.objects]. For a target, it is
	// negative: -1 for the first target in [simulation.used], -2 for the second, and so on.
	index int
}

// wakeups is a heap of wakeups ordered by time. Of the wakeups at the same time, targets come
// first, then ScheduledRestarts ordered by name, so that equal inputs result in equal forecasts.
type wakeups []wakeup

func (w wakeups) before(i, j int) bool {
	a, b := &w[i], &w[j]
	return a.at < b.at || a.at == b.at && a.index < b.index
}

// push adds a wakeup. It does not use container/heap, which would allocate memory for each wakeup.
func (w *wakeups) push(x wakeup) {
	*w = append(*w, x)
	all := *w
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 2
		if !all.before(i, parent) {
			break
		}
		all[i], all[parent] = all[parent], all[i]
		i = parent
	}
}

// pop removes and returns the first wakeup.
func (w *wakeups) pop() wakeup {
	all := *w
	first, last := all[0], len(all)-1
	all[0], all[last] = all[last], wakeup{}
	all = all[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < last && all.before(child+1, child) {
			child++
		}
		if child >= last || !all.before(child, i) {
			break
		}
		all[i], all[child] = all[child], all[i]
		i = child
	}
	*w = all
	return first
}

// agenda is the queue of the events of a forecast. It contains no event after the end of the
// forecast.
type agenda struct {
	wakeups wakeups
	until   time.Time
}

// wakeObject schedules the next decision about a ScheduledRestart; a zero time means never.
func (a *agenda) wakeObject(o *object, at time.Time) {
	if o.wake = at; !at.IsZero() && !at.After(a.until) {
		a.wakeups.push(wakeup{at.UnixNano(), o.index})
	}
}

// wakeTarget schedules the end of a target's rollout; a zero time means never.
func (a *agenda) wakeTarget(t *target, at time.Time) {
	if t.ends = at; !at.IsZero() && !at.After(a.until) {
		a.wakeups.push(wakeup{at.UnixNano(), t.index})
	}
}
