// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"
)

// wakeup is an entry of the agenda: a target whose rollout completes, or an object to decide about. It is
// ignored if its target or object has been given another time since.
type wakeup struct {
	// at is the time in nanoseconds since 1970, and order the rank among wakeups of the same time. Both are
	// numbers, as wakeups are compared a million times.
	at     int64
	order  int
	target *target
	object *object
}

// targetsFirst is the rank of targets.
const targetsFirst = -1

// wakeups is a heap. At the same time, targets come first, then objects by name, so that equal inputs have
// equal forecasts.
type wakeups []wakeup

func (w wakeups) before(i, j int) bool {
	a, b := &w[i], &w[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

// push adds a wakeup. container/heap would allocate memory for each.
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

// pop removes the first wakeup.
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

// outdated reports whether the target or object has been given another time since.
func (w *wakeup) outdated() bool {
	if w.target != nil {
		return w.target.completes.UnixNano() != w.at
	}
	return w.object.wake.IsZero() || w.object.wake.UnixNano() != w.at
}

// agenda has the pending wakeups until the end of the forecast.
type agenda struct {
	wakeups wakeups
	until   time.Time
}

// wakeObject schedules the next decision about an object; zero means never.
func (a *agenda) wakeObject(o *object, at time.Time) {
	if o.wake = at; !at.IsZero() && !at.After(a.until) {
		a.wakeups.push(wakeup{at: at.UnixNano(), order: o.order, object: o})
	}
}

// wakeTarget schedules the completion of a target's rollout.
func (a *agenda) wakeTarget(t *target, at time.Time) {
	if t.completes = at; !at.After(a.until) {
		a.wakeups.push(wakeup{at: at.UnixNano(), order: targetsFirst, target: t})
	}
}

// next returns the next wakeup, and false if there is none.
func (a *agenda) next() (wakeup, bool) {
	for len(a.wakeups) > 0 {
		if w := a.wakeups.pop(); !w.outdated() {
			return w, true
		}
	}
	return wakeup{}, false
}
