// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"container/heap"
	"time"
)

// wakeup is when something has to be looked at: a target whose rollout completes, or an
// object that has to be decided about. One that has got another time since is ignored.
type wakeup struct {
	at     time.Time
	target *target
	object *object
}

// wakeups are a heap of them. At the same time, targets come first, and objects in the order
// of their names: the same input has to have the same forecast.
type wakeups []wakeup

func (w wakeups) Len() int      { return len(w) }
func (w wakeups) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *wakeups) Push(x any)   { *w = append(*w, x.(wakeup)) }

func (w wakeups) Less(i, j int) bool {
	return cmp.Or(w[i].at.Compare(w[j].at), cmp.Compare(w[i].order(), w[j].order())) < 0
}

func (w *wakeups) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = (*w)[:last]
	return x
}

func (w *wakeup) order() int {
	if w.target != nil {
		return -1
	}
	return w.object.order
}

// outdated reports whether the target or object is to be looked at another time instead.
func (w *wakeup) outdated() bool {
	if w.target != nil {
		return !w.target.completes.Equal(w.at)
	}
	return !w.object.wake.Equal(w.at)
}

// wakeObject has an object decided about at a time; zero means never.
func (s *simulation) wakeObject(o *object, at time.Time) {
	if o.wake = at; !at.IsZero() && !at.After(s.in.Until) {
		heap.Push(&s.wakeups, wakeup{at: at, object: o})
	}
}

// wakeTarget completes the rollout of a target at a time.
func (s *simulation) wakeTarget(t *target, at time.Time) {
	if t.completes = at; !at.After(s.in.Until) {
		heap.Push(&s.wakeups, wakeup{at: at, target: t})
	}
}

// next returns what has to be looked at next, and false if that is nothing.
func (s *simulation) next() (wakeup, bool) {
	for len(s.wakeups) > 0 {
		if w := heap.Pop(&s.wakeups).(wakeup); !w.outdated() {
			return w, true
		}
	}
	return wakeup{}, false
}
